package autosave_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// A page got the event of a draft of its own text, and its user types on: the file of the draft is open again. The draft still waits for a
// decision. Discarding it removes the text that the event named, and the text that was typed since becomes a draft.
func TestDraftThatTypingHasReopenedIsDiscarded(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.readOnlyTypist(storage, ", more")
		all, err := a.Drafts(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 1)
		assert.Equal(t, "a-1", all[0].ID)
		assert.Equal(t, 1, a.State().Drafts)
		for _, as := range []autosave.Resolution{autosave.AsContent, autosave.AsGeneration} {
			require.ErrorIs(t, a.ResolveDraft(t.Context(), "a-1", as), autosave.ErrReadOnly)
		}

		require.NoError(t, a.ResolveDraft(t.Context(), "a-1", autosave.AsDiscard))
		w.sleep(0)
		assert.Equal(t, 1, a.State().Drafts)
		assert.Equal(t, []string{"one, mine, more"}, a.texts())
		require.ErrorIs(t, a.Dispose(t.Context()), autosave.ErrReadOnly)
		assert.Equal(t, []string{"lock-lost: one, mine, more"}, storedDrafts(t, storage))
	})
}

// The page edits again, and decides before it has saved.
func TestDraftThatTypingHasReopenedIsSaved(t *testing.T) {
	for _, as := range []autosave.Resolution{autosave.AsContent, autosave.AsGeneration, autosave.AsDiscard} {
		t.Run(string(as), func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				a := w.readOnlyTypist(storage, ", more")
				require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
				require.NoError(t, a.ResolveDraft(t.Context(), "a-1", as))
				w.sleep(time.Second)
				assert.Equal(t, "one, mine, more", w.saved(), "an editor saves its text nevertheless")
				assert.Empty(t, storage.Texts())
				assert.Zero(t, a.State().Drafts)
				require.ErrorIs(t, a.ResolveDraft(t.Context(), "a-1", as), autosave.ErrNotFound)
			})
		})
	}
}

// Another page has taken the sealed draft over, and nothing was typed since: no draft waits.
func TestSealedDraftThatIsGoneIsNotListed(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.savedOne(storage)
		w.stealFrom(a, ", mine")
		b := w.author("b", storage).start()
		require.Equal(t, "one, mine", b.shows())
		w.sleep(time.Second)
		assert.Empty(t, a.texts())
		require.ErrorIs(t, a.ResolveDraft(t.Context(), "a-1", autosave.AsDiscard), autosave.ErrNotFound)
	})
}
