package autosave_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// A user discards the draft of a page, and the page acquires the lock again. It reports the last change of the discarded text only while it
// loads the content. The page does not save that text.
func TestDiscardedTextWithAMarkDuringTheLoadIsNotSaved(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.savedOne(storage)
		w.stealFrom(a, ", mine")
		require.NoError(t, a.ResolveDraft(t.Context(), "a-1", autosave.AsDiscard))
		w.sleep(0)
		stopped, goOn := a.stopsAt("write index/")
		go func() { assert.NoError(t, a.RequestEdit(w.Context(), autosave.EditOptions{})) }()
		require.True(t, stopped())
		a.MarkDirty()
		goOn()
		w.sleep(time.Minute)
		require.False(t, a.ReadOnly())
		assert.Equal(t, "one", a.shows())
		assert.Equal(t, "one", w.saved())
		assert.Empty(t, storedDrafts(t, storage))
	})
}
