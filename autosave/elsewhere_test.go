package autosave_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// A page stores a draft by itself, without the Saver, which finds it in a list and reports it once.
func TestDraftThatIsFoundInAListIsReported(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, shelf *autosavetest.DraftStorage) {
		w.author("a", shelf).start()
		b := w.author("b", shelf).start()
		b.types("mine")
		_, err := b.desk.Seal(t.Context(), autosave.CauseLockLost)
		require.NoError(t, err)
		for range 2 {
			_, err = b.Drafts(t.Context())
			require.NoError(t, err)
		}
		require.Len(t, b.heard(), 1)
		assert.Equal(t, "b-1", b.heard()[0].ID)
		assert.Equal(t, 1, b.State().Drafts)
	})
}
