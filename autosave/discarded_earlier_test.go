package autosave_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// The user discards a draft. Its page has typed on, and ends. That later text was not discarded: it becomes the content.
func TestTextTypedAfterADiscardIsAdopted(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.savedOne(storage)
		leave := func(number int64, text string) {
			other := storage.Page()
			other.Journal(autosave.Draft{ID: "other", Number: number, At: time.Now(), Base: a.base}, []byte(text))
			other.End()
		}
		leave(1, "one, two")
		require.NoError(t, a.ResolveDraft(t.Context(), "other", autosave.AsDiscard))
		leave(2, "one, two, three")
		stealer := w.stealer()
		w.sleep(100 * time.Millisecond)
		require.NoError(t, stealer.Release(t.Context()))
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		w.sleep(time.Second)
		assert.Equal(t, "one, two, three", a.shows())
		assert.Equal(t, "one, two, three", w.saved())
		assert.Empty(t, storedDrafts(t, storage))
	})
}
