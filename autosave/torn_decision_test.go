package autosave_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// A write fails once while a decision about a draft is carried out. If the decision is not carried out, the draft waits as before.
func TestWriteFailsDuringADecision(t *testing.T) {
	for _, as := range []autosave.Resolution{autosave.AsContent, autosave.AsGeneration} {
		failed := 0
		for _, f := range autosavetest.Faults {
			for step := range 20 {
				drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
					w.dispute(storage)
					c := w.author("c", storage).start()
					c.files.Break(step, f, false)
					if c.ResolveDraft(t.Context(), "a-1", as) == nil || slices.Contains(w.generations(), "one, mine") {
						return // it was carried out, although the answer may be lost
					}
					failed++
					w.sleep(time.Minute)
					assert.Equal(t, "one, theirs", w.saved())
					assert.Equal(t, []string{"one, mine"}, c.texts(), "%v %v at %d", as, f, step)
					require.NoError(t, c.Dispose(t.Context()))
					d := w.author("d", storage).start()
					if as == autosave.AsContent || !slices.Contains(w.generations(), "one, mine") { // a later editor may find the generation
						assert.Equal(t, []string{"one, mine"}, d.texts(), "%v %v at %d", as, f, step)
					}
				})
			}
		}
		assert.Greater(t, failed, 5)
	}
}
