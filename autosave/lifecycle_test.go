package autosave_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
)

func TestSleepingPageDoesNotBlockOthers(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b := w.tab("a"), w.tab("b")
		a.typed("before the sleep")
		a.forget()
		require.NoError(t, a.Suspend(t.Context()))
		w.sleep(0)
		assert.Equal(t, "before the sleep", b.shows())
		b.typed(", then b")
		w.sleep(time.Minute)
		require.NoError(t, a.Resume(t.Context()))
		assert.True(t, a.ReadOnly(), "somebody else edits")
		require.NoError(t, b.Dispose(t.Context()))
		w.sleep(0)
		assert.Equal(t, "before the sleep, then b", a.shows())
		a.told(`
			0s phase readonly pending=1
			0s phase writing-current pending=1
			0s phase updating-index pending=16
			0s phase gc pending=16
			0s phase readonly
			0s saved #1 16B
			1m0s phase awaiting-lock
			1m0s phase readonly acquire-denied
			1m0s readonly acquire-failed acquire-denied holder=b
			1m0s phase awaiting-lock acquire-denied
			1m0s editable content="before the sleep, then b"
			1m0s phase idle
		`)
	})
}

// leaving counts the listeners that stop listening to a channel.
type leaving struct {
	autosave.Channel
	left *atomic.Int32
}

func (l leaving) Listen(handle func(autosave.Message)) (func(), error) {
	stop, err := l.Channel.Listen(handle)
	return func() { l.left.Add(1); stop() }, err
}

func TestDisposedPageStopsListening(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		var left atomic.Int32
		a.config.Channel = leaving{a.channel, &left}
		a.open()
		require.NoError(t, a.Suspend(t.Context()))
		assert.Zero(t, left.Load(), "a sleeping page wakes")
		require.NoError(t, a.Dispose(t.Context()))
		w.sleep(0)
		assert.Equal(t, int32(1), left.Load())
	})
}

func TestSleepingPageLeavesQueue(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b, c := w.tab("a"), w.tab("b"), w.tab("c")
		require.NoError(t, b.Suspend(t.Context()))
		require.NoError(t, a.Dispose(t.Context()))
		w.sleep(0)
		assert.True(t, b.ReadOnly())
		assert.False(t, c.ReadOnly())
		require.ErrorIs(t, b.RequestEdit(t.Context(), autosave.EditOptions{}), autosave.ErrReadOnly)
	})
}

func TestPageThatWakesAloneGoesOn(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		a.typed("one")
		require.NoError(t, a.Suspend(t.Context()))
		a.forget()
		w.sleep(time.Hour)
		require.NoError(t, a.Resume(t.Context()))
		assert.False(t, a.ReadOnly())
		a.told(`
			1h0m0s phase awaiting-lock
			1h0m0s editable
			1h0m0s phase idle
		`)
		assert.Equal(t, "one", a.shows(), "there is nothing newer to load")
	})
}

func TestSuspendKeepsWhatCannotBeSaved(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		a.typed("kept")
		a.files.Fail()
		require.ErrorIs(t, a.Suspend(t.Context()), autosave.ErrWriteFailed)
		assert.Equal(t, autosave.PhaseReadonly, a.State().Phase)
		assert.False(t, w.tab("b").ReadOnly(), "the lock is given away nevertheless")
		a.files.Mend()
		require.NoError(t, a.Resume(t.Context()))
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		w.sleep(time.Second)
		assert.Equal(t, "kept", w.saved())
	})
}

// A page that was frozen with its lock does not write before it knows that it still holds the lock.
func TestResumeVerifiesLease(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		a.typed("x")
		a.forget()
		require.NoError(t, a.Resume(t.Context()))
		assert.False(t, a.ReadOnly(), "it has it")
		a.told(`
			0s phase awaiting-lock pending=1
			0s phase debouncing pending=1
		`)
		a.forget()
		w.clock.Sleep(time.Hour)                  // the machine slept, and no timer has noticed
		require.NoError(t, a.Resume(t.Context())) // read-only, until its turn comes
		w.sleep(time.Second)
		assert.False(t, a.ReadOnly(), "nobody else wanted it")
		assert.Equal(t, "x", w.saved())
		assert.Equal(t, []string{
			"phase awaiting-lock pending=1",
			"phase readonly pending=1 lease-stale",
			`readonly renew-failed lease-stale unsaved="x"`,
			"phase awaiting-lock pending=1 lease-stale",
			"editable",
			"phase debouncing pending=1",
			"phase writing-current pending=1",
			"phase updating-index pending=1",
			"phase gc pending=1",
			"phase idle",
			"saved #2 1B",
		}, a.lines())
	})
}

// closedChannel is a channel that cannot be listened to.
type closedChannel struct{ autosave.Channel }

func (closedChannel) Listen(func(autosave.Message)) (func(), error) { return nil, errNotNow }

// New fails where the channel fails, and leaves nothing that runs.
func TestNewWithoutItsChannel(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.config.Channel = closedChannel{a.channel}
		require.ErrorIs(t, a.tryOpen(), errNotNow)
		assert.False(t, w.tab("b").ReadOnly())
	})
}

// A page that may not write, and that has no storage for drafts, ends with unsaved text: the caller gets an error. A page that sleeps still
// has its text.
func TestViewerWithoutDraftsReportsWhatItLoses(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.tab("a")
		b, c := w.tab("b"), w.tab("c")
		b.typed("words")
		require.NoError(t, b.Suspend(t.Context()))
		require.ErrorIs(t, b.Dispose(t.Context()), autosave.ErrReadOnly)
		require.NoError(t, c.Dispose(t.Context()), "nothing was typed")
	})
}
