package autosave_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// A page marks a change that is none, as an editor does that reports the text that it was given, or a user who undoes what was typed. Then
// the page dies, and another page saves. The history has the text of the draft, so there is nothing to decide.
func TestDraftThatEqualsItsBaseIsNoConflict(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.savedOne(storage)
		require.NoError(t, a.Dispose(t.Context()))
		w.overwritten("theirs")
		left := storage.Page()
		left.Journal(autosave.Draft{ID: "undone", Number: 2, At: time.Now(), Base: a.base}, []byte("one"))
		left.Journal(autosave.Draft{ID: "changed", Number: 2, At: time.Now(), Base: a.base}, []byte("one, mine"))
		left.End()
		b := w.author("b", storage).start()
		assert.Equal(t, "theirs", b.shows())
		assert.Equal(t, []string{"one|one, mine|theirs"}, b.disputes())
		assert.Equal(t, []string{"crashed: one, mine"}, storedDrafts(t, storage))
	})
}
