package autosave_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
)

// A page flushes while a restore writes, and the caller of the restore gives up before that ends. The page keeps its text, and the flush returns
// the generation of that text.
func TestFlushDuringAnAbandonedRestoreReturnsThePagesText(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, first := w.restoring()
		ctx, giveUp := context.WithCancel(t.Context())
		restored := a.restore(ctx, first)
		w.sleep(300 * time.Millisecond)
		type result struct {
			g   autosave.Generation
			err error
		}
		flushed := make(chan result, 1)
		go func() { g, err := a.FlushNow(t.Context()); flushed <- result{g, err} }()
		w.sleep(300 * time.Millisecond)
		giveUp()
		require.ErrorIs(t, <-restored, context.Canceled)
		r := <-flushed
		require.NoError(t, r.err)
		content, err := a.Read(t.Context(), r.g.ID)
		require.NoError(t, err)
		assert.Equal(t, "one two", string(content))
		a.agree("one two")
	})
}
