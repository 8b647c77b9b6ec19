package autosave_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// Another page makes the text of a page the content, and types on until the history no longer has that generation. The first page still shows
// its text. It has nothing to save, so it ends without an error and without a draft, which would be a conflict.
func TestTextThatAnotherPageHasSavedIsNoDraft(t *testing.T) {
	for name, more := range map[string]string{"as it was": "", "and more": ", more"} {
		t.Run(name, func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				a := w.savedOne(storage)
				w.stealFrom(a, ", mine")
				b := w.author("b", storage)
				b.config.Limits.MaxGenerations = 2
				b.start()
				require.Equal(t, "one, mine", b.shows())
				w.sleep(0)
				assert.Zero(t, a.State().Drafts)
				assert.Zero(t, a.State().PendingBytes)
				if more != "" {
					a.types(more)
				}
				for range 4 {
					b.types("+")
					w.sleep(10 * time.Second)
				}
				err := a.Dispose(t.Context())
				if more != "" {
					require.ErrorIs(t, err, autosave.ErrReadOnly)
					assert.Equal(t, []string{"lock-lost: one, mine, more"}, storedDrafts(t, storage))
					return
				}
				require.NoError(t, err)
				assert.Empty(t, storedDrafts(t, storage))
			})
		})
	}
}

// A page lists the drafts after another page has made its text the content, and before that page has said so. It has nothing to save.
func TestTextThatAnotherPageHasSavedIsNoDraftAfterAList(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.savedOne(storage)
		w.stealFrom(a, ", mine")
		b := w.author("b", storage)
		listen := b.config.Listener
		b.config.Listener = func(e autosave.Event) {
			if e.Type == autosave.EventEditable {
				assert.Empty(t, a.texts())
			}
			listen(e)
		}
		b.start()
		require.Equal(t, "one, mine", b.shows())
		w.sleep(0)
		assert.Zero(t, a.State().PendingBytes)
		require.NoError(t, a.Dispose(t.Context()))
		assert.Empty(t, storedDrafts(t, storage))
	})
}

// A page is busy as its text becomes a draft. Before it learns of that, another page has made the draft the content, and has said so.
func TestTextThatIsSavedBeforeItsPageKnowsTheDraftIsNoDraft(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.author("a", storage)
		a.config.NoStandby, a.config.Drafts = true, lateSeal{a.pageDrafts}
		a.start()
		a.types("one")
		w.sleep(time.Second)
		w.stealFrom(a, ", mine")
		b := w.author("b", storage).start()
		require.Equal(t, "one, mine", b.shows())
		w.sleep(5 * time.Second)
		assert.Zero(t, a.State().Drafts)
		assert.Zero(t, a.State().PendingBytes)
		require.NoError(t, a.Dispose(t.Context()))
		assert.Empty(t, storedDrafts(t, storage))
	})
}

// A page stores a draft by itself, without the Saver, which finds it in a list and reports it once.
func TestDraftThatIsFoundInAListIsReported(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.author("a", storage).start()
		b := w.author("b", storage).start()
		b.types("mine")
		_, err := b.pageDrafts.Seal(t.Context(), autosave.CauseLockLost)
		require.NoError(t, err)
		for range 2 {
			_, err = b.Drafts(t.Context())
			require.NoError(t, err)
		}
		require.Len(t, b.reportedDrafts(), 1)
		assert.Equal(t, "b-1", b.reportedDrafts()[0].ID)
		assert.Equal(t, 1, b.State().Drafts)
	})
}

// A page stored its text as a draft before it got the lock, and saves that text now.
func TestListDoesNotReportTheTextThatThePageSaves(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.author("a", storage)
		a.config.Lineage = "a-1"
		a.start()
		a.types("mine")
		_, err := a.pageDrafts.Seal(t.Context(), autosave.CauseLockLost)
		require.NoError(t, err)
		require.False(t, a.ReadOnly())
		_, err = a.Drafts(t.Context())
		require.NoError(t, err)
		w.sleep(time.Second)
		assert.Empty(t, a.reportedDrafts())
	})
}

// A page without the lock types, stores its draft by itself and types on. Each list reports only what is new.
func TestListReportsNoOlderSnapshotOfADraft(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.readOnlyTypist(storage, ", more")
		_, err := a.pageDrafts.Seal(t.Context(), autosave.CauseLockLost)
		require.NoError(t, err)
		a.texts()
		a.types(", and more")
		_, err = a.Drafts(t.Context())
		require.NoError(t, err)
		var numbers []int64
		for _, d := range a.reportedDrafts() {
			numbers = append(numbers, d.Number)
		}
		assert.Equal(t, []int64{2, 3}, numbers)
	})
}
