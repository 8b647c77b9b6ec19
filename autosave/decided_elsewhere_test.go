package autosave_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// A page that lost its lock shows the text of its draft, and another page discards that draft. The first page ends: it reports no loss,
// and the draft does not come back. Text that was typed since is still a draft.
func TestDraftThatAnotherPageHasDiscardedStaysDiscarded(t *testing.T) {
	for name, more := range map[string]string{"as it was": "", "and more": ", more"} {
		t.Run(name, func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				a := w.savedOne(storage)
				w.stealFrom(a, ", mine")
				w.overwritten("theirs")
				b := w.author("b", storage).start()
				require.Equal(t, []string{"one, mine"}, b.texts())
				require.NoError(t, b.ResolveDraft(t.Context(), "a-1", autosave.AsDiscard))
				w.sleep(0)
				assert.Zero(t, a.State().Drafts)
				assert.Zero(t, a.State().PendingBytes)
				if more != "" {
					a.types(more)
					w.sleep(0)
					require.ErrorIs(t, a.Dispose(t.Context()), autosave.ErrReadOnly)
					assert.Equal(t, []string{"lock-lost: one, mine, more"}, storedDrafts(t, storage))
					return
				}
				require.NoError(t, a.Dispose(t.Context()))
				assert.Empty(t, storedDrafts(t, storage))
			})
		})
	}
}

// Another page has discarded a draft, and its message is late: the page of the draft has typed on, and made a draft of that.
func TestTextTypedAfterADiscardThatArrivedLateIsADraft(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.savedOne(storage)
		w.stealFrom(a, ", mine")
		w.overwritten("theirs")
		number := a.number
		a.types(", more")
		require.NoError(t, a.Suspend(t.Context()))
		require.NoError(t, w.network.Join().Post(autosave.Message{Kind: autosave.DraftResolved, Round: "a-1", Question: int(number)}))
		w.sleep(time.Second)
		assert.NotZero(t, a.State().PendingBytes)
		assert.Equal(t, []string{"one, mine, more"}, a.texts())
		require.NoError(t, a.Resume(t.Context()))
		w.sleep(time.Second)
		assert.Equal(t, "theirs", a.shows())
		assert.Equal(t, []string{"one, mine, more"}, a.texts())
	})
}

// Another page merges the draft of a page that lost its lock and still shows that text. It ends without an error and without a draft, and loads the
// merged content if it edits again.
func TestDraftThatAnotherPageHasMergedIsNoDraft(t *testing.T) {
	for name, edits := range map[string]bool{"it ends": false, "it edits": true} {
		t.Run(name, func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				a := w.savedOne(storage)
				w.stealFrom(a, ", mine")
				w.overwritten("theirs")
				b := w.author("b", storage)
				b.config.Limits.MaxGenerations = 2
				b.config.Merge = func(_ context.Context, sides autosave.Conflict) (autosave.Content, error) {
					return autosave.Bytes(string(sides.Theirs) + "+" + string(sides.Mine)), nil
				}
				b.start()
				require.Equal(t, "theirs+one, mine", b.shows())
				w.sleep(0)
				assert.Zero(t, a.State().PendingBytes)
				for range 4 {
					b.types("+")
					w.sleep(10 * time.Second)
				}
				if edits {
					require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
					assert.Equal(t, "theirs+one, mine++++", a.shows())
					assert.Empty(t, a.texts())
				}
				require.NoError(t, a.Dispose(t.Context()))
				assert.Empty(t, storedDrafts(t, storage))
			})
		})
	}
}

// A page that may not write has made a draft of its text by itself. The editor makes that draft the content or keeps it in the history, or
// another page adopts it. The first page ends without an error and without a draft.
func TestDraftOfAViewerThatIsSavedElsewhereIsNoDraft(t *testing.T) {
	for name, decide := range map[string]func(w *world, a, c *writer){
		"content": func(w *world, a, _ *writer) {
			require.NoError(w, a.ResolveDraft(w.Context(), "b-1", autosave.AsContent))
		},
		"generation": func(w *world, a, _ *writer) {
			require.NoError(w, a.ResolveDraft(w.Context(), "b-1", autosave.AsGeneration))
		},
		"adopted": func(w *world, a, c *writer) {
			require.NoError(w, a.Dispose(w.Context()))
			c.start()
			require.Equal(w, "mine", c.shows())
		},
	} {
		t.Run(name, func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				a, b, c := w.author("a", storage).start(), w.author("b", storage), w.author("c", storage)
				b.config.NoStandby = true
				b.start()
				b.types("mine")
				_, err := b.pageDrafts.Seal(t.Context(), autosave.CauseLockLost)
				require.NoError(t, err)
				require.Len(t, b.texts(), 1)
				decide(w, a, c)
				w.sleep(time.Second)
				assert.Zero(t, b.State().Drafts)
				require.NoError(t, b.Dispose(t.Context()))
				assert.Empty(t, storedDrafts(t, storage))
			})
		})
	}
}
