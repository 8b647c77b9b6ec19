package autosave_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// A page discards the draft of its own text while it sleeps. As it wakes, it loads the content and is not offered that
// text again.
func TestDraftDiscardedBySuspendedPageStaysDiscarded(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.savedOne(storage)
		w.stealFrom(a, ", mine")
		w.overwritten("theirs")
		require.NoError(t, a.Suspend(t.Context()))
		require.NoError(t, a.ResolveDraft(t.Context(), "a-1", autosave.AsDiscard))
		a.mu.Lock()
		a.unsaved = nil
		a.mu.Unlock()
		require.NoError(t, a.Resume(t.Context()))
		w.sleep(0)
		assert.False(t, a.ReadOnly())
		assert.Equal(t, "theirs", a.shows())
		assert.Empty(t, a.offered())
		assert.Empty(t, storedDrafts(t, storage))
		assert.Zero(t, a.State().Drafts)
	})
}

// A page that may not write makes a draft of its text by itself, without the Saver, and the user discards the draft. The page is not
// offered that text again, when it wakes or when it becomes the editor.
func TestDraftOfAViewerStaysDiscarded(t *testing.T) {
	for name, wakes := range map[string]bool{"it becomes the editor": false, "it wakes": true} {
		t.Run(name, func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				a, b := w.author("a", storage).start(), w.author("b", storage).start()
				b.types("mine")
				_, err := b.pageDrafts.Seal(t.Context(), autosave.CauseLockLost)
				require.NoError(t, err)
				require.NoError(t, b.ResolveDraft(t.Context(), "b-1", autosave.AsDiscard))
				a.types("theirs")
				w.sleep(time.Second)
				if wakes {
					require.NoError(t, b.Suspend(t.Context()))
					require.NoError(t, b.Resume(t.Context()))
					w.sleep(time.Second)
					require.True(t, b.ReadOnly())
					require.Empty(t, b.offered())
				}
				require.NoError(t, a.Dispose(t.Context()))
				w.sleep(time.Second)
				require.False(t, b.ReadOnly())
				assert.Equal(t, "theirs", b.shows())
				assert.Empty(t, b.offered())
				assert.Empty(t, storedDrafts(t, storage))
			})
		})
	}
}

// A page that lost the lock discards the draft of the text that it shows. When it edits again, it shows what is saved, also if nobody else
// has saved meanwhile.
func TestPageThatDiscardsItsTextLoadsTheContent(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.savedOne(storage)
		a.types(", mine")
		stealer := w.stealer()
		w.sleep(time.Second)
		require.NoError(t, a.ResolveDraft(t.Context(), "a-1", autosave.AsDiscard))
		require.NoError(t, stealer.Release(t.Context()))
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		w.sleep(time.Minute)
		require.Equal(t, autosave.PhaseIdle, a.State().Phase)
		assert.Equal(t, "one", w.saved())
		assert.Equal(t, w.saved(), a.shows())
		a.types(", two")
		w.sleep(time.Second)
		assert.Equal(t, "one, two", w.saved())
		assert.Empty(t, storedDrafts(t, storage))
	})
}

// Nothing was ever saved when a page lost the lock. It, or another page, discards the draft of the text that it shows. When it edits again,
// there is no content to load: it saves what it shows.
func TestPageThatDiscardsItsTextShowsWhatIsSaved(t *testing.T) {
	for name, elsewhere := range map[string]bool{"itself": false, "in another page": true} {
		t.Run(name, func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				a := w.author("a", storage)
				a.config.NoStandby = true
				a.start()
				a.types("mine")
				stealer := w.stealer()
				w.sleep(time.Second)
				decides := a
				if elsewhere {
					decides = w.author("b", storage)
					decides.config.NoStandby = true
					decides.start()
				}
				require.NoError(t, decides.ResolveDraft(t.Context(), "a-1", autosave.AsDiscard))
				w.sleep(0)
				require.NoError(t, stealer.Release(t.Context()))
				require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
				w.sleep(time.Minute)
				require.Equal(t, autosave.PhaseIdle, a.State().Phase)
				assert.Equal(t, a.shows(), w.saved())
				assert.Empty(t, storedDrafts(t, storage))
			})
		})
	}
}
