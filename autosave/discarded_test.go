package autosave_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// A page discards the draft of its own text while it sleeps. As it wakes, it loads the content and is not offered that
// text again.
func TestDraftDiscardedBySuspendedPageStaysDiscarded(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, shelf *autosavetest.DraftStorage) {
		a := w.savedOne(shelf)
		w.robbed(a, ", mine")
		w.overwritten("theirs")
		require.NoError(t, a.Suspend(t.Context()))
		require.NoError(t, a.ResolveDraft(t.Context(), "a-1", autosave.AsDiscard))
		a.mu.Lock()
		a.stored, a.unsaved = a.number, nil // the page's part forgets a discarded draft too
		a.mu.Unlock()
		require.NoError(t, a.Resume(t.Context()))
		w.sleep(0)
		assert.False(t, a.ReadOnly())
		assert.Equal(t, "theirs", a.shows())
		assert.Empty(t, a.offered())
		assert.Empty(t, storedDraft(t, shelf))
		assert.Zero(t, a.State().Drafts)
	})
}
