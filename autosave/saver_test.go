package autosave_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
)

func TestTypingIsSavedHalfASecondLater(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		assert.False(t, a.ReadOnly())
		lease, ok := a.Lease()
		require.True(t, ok)
		assert.Equal(t, int64(1), lease.Token)
		a.typed("hello")
		assert.Equal(t, autosave.PhaseDebouncing, a.State().Phase)
		w.sleep(time.Second)
		assert.Equal(t, "hello", w.saved())
		a.told(`
			0s phase awaiting-lock
			0s phase idle
			0s editable
			0s phase debouncing pending=1
			500ms phase writing-current pending=1
			500ms phase updating-index pending=5
			500ms phase gc pending=5
			500ms phase idle
			500ms saved #1 5B
		`)
		assert.Equal(t, autosave.State{Phase: autosave.PhaseIdle, LastSuccess: a.State().LastSuccess}, a.State())
		assert.Equal(t, 500*time.Millisecond, a.State().LastSuccess.Sub(w.start))
	})
}

func TestSecondPageStandsBy(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		a.typed("from a")
		b := w.tab("b")
		assert.True(t, b.ReadOnly())
		assert.Equal(t, "a", b.State().Holder.OwnerID)
		w.sleep(time.Second)
		require.NoError(t, a.Dispose(t.Context()))
		w.sleep(0)
		assert.False(t, b.ReadOnly())
		assert.Equal(t, "from a", b.shows())
		b.told(`
			0s phase awaiting-lock
			0s phase readonly acquire-denied
			0s readonly acquire-failed acquire-denied holder=a
			1s phase awaiting-lock acquire-denied
			1s phase idle
			1s editable content="from a"
		`)
		b.typed(", then b")
		w.sleep(time.Second)
		assert.Equal(t, []string{"from a, then b", "from a"}, w.generations())
	})
}
