package autosave_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// A page that shows a draft sleeps in the cache of the browser, where it receives nothing, and another page discards the draft. The page begins
// again as it wakes. It makes no draft of that text again, whether it edits or not.
func TestDraftThatIsDiscardedWhileItsPageSleepsStaysDiscarded(t *testing.T) {
	for name, edits := range map[string]bool{"the other page edits": false, "it edits": true} {
		t.Run(name, func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				a := w.savedOne(storage)
				w.stealFrom(a, ", mine")
				w.overwritten("theirs")
				a.die()
				b := w.author("b", storage).start()
				require.Equal(t, []string{"one, mine"}, b.texts())
				require.NoError(t, b.ResolveDraft(t.Context(), "a-1", autosave.AsDiscard))
				if edits {
					require.NoError(t, b.Dispose(t.Context()))
				}
				c := w.author("c", storage).continues(a)
				c.number++ // a page may count the same text twice
				c.start()
				w.sleep(time.Second)
				require.Equal(t, edits, !c.ReadOnly())
				if !edits { // the page repeats its marks, and one of them comes late
					c.MarkDirty()
					w.sleep(time.Second)
				}
				assert.Empty(t, c.texts())
				assert.Zero(t, c.State().PendingBytes)
				if edits {
					assert.Equal(t, "theirs", c.shows())
				}
				require.NoError(t, c.Dispose(t.Context()))
				assert.Empty(t, storedDrafts(t, storage))
				assert.Equal(t, "theirs", w.saved())
			})
		})
	}
}

// A page that shows a draft sleeps, and the page that edits decides about the draft. Its own text is still the one on which the draft was typed.
// The sleeping page loads what is saved as it wakes, and edits. It does not save the text against the decision.
func TestDecisionHoldsForAPageThatSlept(t *testing.T) {
	for as, saved := range map[autosave.Resolution]string{autosave.AsDiscard: "one", autosave.AsGeneration: "one", autosave.AsContent: "one, mine"} {
		t.Run(string(as), func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				a := w.savedOne(storage)
				b := w.author("b", storage).start()
				require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{}))
				a.types(", mine")
				_, err := a.pageDrafts.Seal(t.Context(), autosave.CauseLockLost)
				require.NoError(t, err)
				a.die()
				require.Equal(t, "one", b.shows())
				require.NoError(t, b.ResolveDraft(t.Context(), "a-1", as))
				require.NoError(t, b.Dispose(t.Context()))
				c := w.author("c", storage).continues(a).start()
				w.sleep(time.Minute)
				require.False(t, c.ReadOnly())
				assert.Zero(t, c.State().PendingBytes)
				assert.Equal(t, saved, c.shows())
				assert.Equal(t, saved, w.saved())
				assert.Empty(t, c.texts())
				c.types(", again")
				w.sleep(time.Minute)
				assert.Equal(t, saved+", again", w.saved())
			})
		})
	}
}
