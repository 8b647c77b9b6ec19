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

// Another page merges the draft of a page, which reports the last change of its text only then. The merged text contains that text: it does not
// become a draft again, and is not merged again.
func TestMergedTextWithALateMarkIsNotMergedAgain(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.savedOne(storage)
		w.stealFrom(a, ", mine")
		w.overwritten("theirs")
		merging := func(name string) *writer {
			b := w.author(name, storage)
			b.config.Merge = joined
			return b
		}
		b := merging("b").start()
		require.Equal(t, "theirs+one, mine", b.shows())
		w.sleep(0)
		a.mu.Lock()
		a.number++ // a page may count the same text twice
		a.mu.Unlock()
		a.MarkDirty()
		w.sleep(time.Second)
		assert.Empty(t, storedDrafts(t, storage))
		require.NoError(t, b.Dispose(t.Context()))
		merging("c").start()
		assert.Equal(t, "theirs+one, mine", w.saved())
	})
}

func joined(_ context.Context, sides autosave.Conflict) (autosave.Content, error) {
	return autosave.Bytes(string(sides.Theirs) + "+" + string(sides.Mine)), nil
}
