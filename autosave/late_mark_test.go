package autosave_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// A page reports the last change of a text only after the text has become a draft, before or after the user discards that draft. The page says
// that it has nothing unsaved, and it does not save the discarded text as it edits again.
func TestDiscardedTextWithALateMarkIsNotSaved(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("by another page %t, mark after it %t", elsewhere, after), func(t *testing.T) {
				drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
					a := w.savedOne(storage)
					w.stealFrom(a, ", mine")
					if !after {
						a.MarkDirty()
					}
					decides := a
					if elsewhere {
						decides = w.viewer(storage)
					}
					require.NoError(t, decides.ResolveDraft(t.Context(), "a-1", autosave.AsDiscard))
					if w.sleep(0); after {
						a.MarkDirty()
					}
					w.sleep(time.Second)
					assert.Zero(t, a.State().PendingBytes)
					require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
					w.sleep(time.Minute)
					assert.Equal(t, "one", a.shows())
					assert.Equal(t, "one", w.saved())
					assert.Empty(t, storedDrafts(t, storage))
				})
			})
		}
	}
}

// viewer opens a page that may not write, although nobody else edits.
func (w *world) viewer(storage *autosavetest.DraftStorage) *writer {
	w.Helper()
	b := w.author("b", storage)
	b.config.NoStandby = true
	editor := w.stealer()
	b.start()
	require.NoError(w, editor.Release(w.Context()))
	return b
}

// Another page makes that draft the content. Then nothing is unsaved, until the user types.
func TestAdoptedTextWithALateMarkIsNotUnsaved(t *testing.T) {
	for name, after := range map[string]bool{"mark before": false, "mark after": true} {
		t.Run(name, func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				a := w.savedOne(storage)
				w.stealFrom(a, ", mine")
				if !after {
					a.MarkDirty()
				}
				b := w.author("b", storage).start()
				require.Equal(t, "one, mine", b.shows())
				if w.sleep(time.Second); after {
					a.MarkDirty()
					w.sleep(time.Second)
				}
				assert.Zero(t, a.State().PendingBytes)
				assert.Zero(t, a.State().Drafts)
				a.types(", more")
				assert.NotZero(t, a.State().PendingBytes)
				require.ErrorIs(t, a.Dispose(t.Context()), autosave.ErrReadOnly)
			})
		})
	}
}

// A page hands the lock over, and reports the last change of the saved text only then.
func TestLateMarkAfterAHandoverIsNothingUnsaved(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a, b := w.author("a", storage).start(), w.author("b", storage).start()
		a.types("one")
		require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{}))
		require.Equal(t, "one", b.shows())
		w.sleep(time.Second)
		require.Zero(t, a.State().PendingBytes)
		a.MarkDirty()
		w.sleep(time.Second)
		assert.Zero(t, a.State().PendingBytes)
	})
}

// lateCommit is a store that answers a while after it has saved, even if nobody waits any more.
type lateCommit struct{ autosave.Store }

func (s lateCommit) Commit(ctx context.Context, c autosave.Commit) (autosave.Generation, error) {
	c.Committed = nil
	g, err := s.Store.Commit(ctx, c)
	time.Sleep(50 * time.Millisecond)
	return g, err
}

// A page loses its lock while it saves, and reports the last change of that text only then. The save succeeds, so nothing is unsaved.
func TestSavedTextWithALateMarkIsNotUnsaved(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.author("a", storage)
		a.config.NoStandby, a.store = true, lateCommit{a.store}
		a.start()
		a.types("one, two")
		w.sleep(510 * time.Millisecond)
		require.Equal(t, autosave.PhaseGC, a.State().Phase)
		w.stealer()
		a.MarkDirty()
		w.sleep(2 * time.Second)
		require.Equal(t, "one, two", w.saved())
		assert.True(t, a.ReadOnly())
		assert.Zero(t, a.State().PendingBytes)
		assert.Zero(t, a.State().Drafts)
	})
}

// A page that may not write marks a text in which nothing has changed, as an editor may do that loads it. The page makes no draft of that, and
// asks for the drafts. Then it says that it has nothing unsaved.
func TestLateMarkOfAViewerIsNothingUnsaved(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.savedOne(storage)
		b := w.author("b", storage).start()
		require.True(t, b.ReadOnly())
		b.MarkDirty()
		w.sleep(time.Second)
		require.NotZero(t, b.State().PendingBytes)
		require.Empty(t, b.texts())
		w.sleep(0)
		assert.Zero(t, b.State().PendingBytes)
		assert.Zero(t, last(b.page, autosave.EventPhase).State.PendingBytes)
	})
}
