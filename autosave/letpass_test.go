package autosave_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/lock"
)

// A page waits for a document around the one that another page asks for. The editor refuses, and is closed. The waiting page has its turn
// soon.
func TestWaiterAroundGetsTheLockAfterARefusal(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.document("a", "book/1")
		a.config.OnHandover = refuses
		a.open()
		x := w.document("x", "book").open()
		b := w.document("b", "book/1").open()
		require.ErrorIs(t, b.RequestEdit(t.Context(), autosave.EditOptions{}), autosave.ErrHandoverRefused)
		require.NoError(t, b.Dispose(t.Context()))
		require.NoError(t, a.Dispose(t.Context()))
		w.sleep(2 * time.Second)
		assert.False(t, x.ReadOnly())
	})
}

// The page that was let pass edits, and is closed. The waiting page has its turn soon.
func TestWaiterAroundGetsTheLockAfterTheNextEditor(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.document("a", "book/1").open()
		x := w.document("x", "book").open()
		b := w.document("b", "book/1").open()
		require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{}))
		require.NoError(t, a.Dispose(t.Context()))
		w.sleep(time.Second)
		require.NoError(t, b.Dispose(t.Context()))
		w.sleep(2 * time.Second)
		assert.False(t, x.ReadOnly())
	})
}

// Two pages ask. The one that asked later gives up, and the waiting page lets the other one pass.
func TestWaiterAroundLetsAllAskersPass(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.document("a", "book/1")
		a.vetoes(2*time.Second, nil)
		a.open()
		x := w.document("x", "book").open()
		b := w.document("b", "book/1").open()
		c := w.document("c", "book/1").open()
		asked := b.asks(t.Context(), autosave.EditOptions{})
		w.sleep(time.Second)
		require.ErrorIs(t, c.RequestEdit(t.Context(), autosave.EditOptions{}), autosave.ErrHandoverBusy)
		require.NoError(t, <-asked)
		assert.False(t, b.ReadOnly())
		assert.True(t, x.ReadOnly())
	})
}

// getsBefore asserts that a page gets the lock that it asks for, although the other one waits around it.
func getsBefore(t *testing.T, asks, waits *page, o autosave.EditOptions) {
	t.Helper()
	require.NoError(t, asks.RequestEdit(t.Context(), o))
	assert.False(t, asks.ReadOnly())
	assert.True(t, waits.ReadOnly())
}

// The editor accepts, and its offer does not arrive. Force takes the lock after all the time that the editor has, and the waiting page
// still lets it pass.
func TestWaiterAroundLetsForcePassAfterAnAnswer(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.document("a", "book/1").open()
		x := w.document("x", "book").open()
		b := w.document("b", "book/1")
		b.config.Channel = lateOffers{b.channel, "", autosave.EditGranted, time.Hour}
		b.open()
		getsBefore(t, b, x, autosave.EditOptions{Force: true})
	})
}

// The page that asks gives the editor much time. The waiting page lets it pass for all of that.
func TestWaiterAroundLetsForcePassAfterALongGrace(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.document("a", "book/1").open()
		x := w.document("x", "book").open()
		b := w.document("b", "book/1").open()
		a.channel.Deafen(true)
		getsBefore(t, b, x, autosave.EditOptions{Force: true, Grace: time.Minute})
	})
}

// blindLocks do not find out in time who holds them. A Manager does so if its server answers late.
type blindLocks struct{ autosave.Locks }

func (l blindLocks) Inspect(ctx context.Context) ([]lock.Holder, []lock.Waiter, error) {
	<-ctx.Done()
	return nil, nil, nil
}

// The waiting page cannot find out in time who edits. It lets the other page pass nevertheless.
func TestWaiterAroundThatLooksSlowlyLetsForcePass(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.document("a", "book/1").open()
		x := w.document("x", "book")
		x.locks = func(l autosave.Locks) autosave.Locks { return blindLocks{l} }
		x.open()
		b := w.document("b", "book/1").open()
		a.channel.Deafen(true)
		getsBefore(t, b, x, autosave.EditOptions{Force: true})
	})
}

// The editor accepts just before the end of the grace, and is too busy to say that it holds a lease. Its offer does not arrive. Force takes the
// lock after all of that.
func TestWaiterAroundLetsForcePassAfterALateAnswer(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.document("a", "book/1")
		a.config.Channel = busyChannel{a.channel, 4900 * time.Millisecond}
		a.options.Channel = silentChannel{a.options.Channel}
		a.open()
		x := w.document("x", "book").open()
		b := w.document("b", "book/1")
		b.config.Channel = lateOffers{b.channel, "", autosave.EditGranted, time.Hour}
		b.open()
		getsBefore(t, b, x, autosave.EditOptions{Force: true})
	})
}

// Two pages ask a silent editor: the one around it without force, the one below with force. Only the first one fails.
func TestWaiterAroundThatAsksLetsForcePass(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.document("a", "book/1").open()
		x := w.document("x", "book").open()
		b := w.document("b", "book/1").open()
		a.channel.Deafen(true)
		asked := x.asks(t.Context(), autosave.EditOptions{})
		w.sleep(time.Second)
		require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{Force: true}))
		require.ErrorIs(t, <-asked, autosave.ErrHandoverNoAnswer)
	})
}

// Both ask with force. One of them edits, whichever has the lower round.
func TestOneOfTwoTakesTheLockByForce(t *testing.T) {
	for range 20 {
		virtual(t, func(t *testing.T, w *world) {
			a := w.document("a", "book/1").open()
			x := w.document("x", "book").open()
			b := w.document("b", "book/1").open()
			a.channel.Deafen(true)
			asked := x.asks(t.Context(), autosave.EditOptions{Force: true})
			w.sleep(time.Second)
			err := b.RequestEdit(t.Context(), autosave.EditOptions{Force: true})
			if <-asked != nil {
				require.NoError(t, err)
			}
			assert.Equal(t, x.ReadOnly(), !b.ReadOnly())
		})
	}
}

// The page that asks is gone without a word, and so is the editor later. The waiting page has its turn soon.
func TestWaiterAroundGetsTheLockAfterAnAskerThatIsGone(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.document("a", "book/1").open()
		x := w.document("x", "book").open()
		b := w.document("b", "book/1").open()
		a.channel.Deafen(true)
		asked := b.asks(t.Context(), autosave.EditOptions{Force: true, Grace: time.Hour})
		b.channel.Deafen(true)
		require.NoError(t, b.Dispose(t.Context()))
		require.ErrorIs(t, <-asked, autosave.ErrDisposed)
		require.NoError(t, a.Dispose(t.Context()))
		w.sleep(2 * time.Second)
		assert.False(t, x.ReadOnly())
	})
}

// One page has two documents and asks for both. It gives up one request, and the waiting page lets the other one pass.
func TestWaiterAroundLetsBothDocumentsOfAPagePass(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a1, a2 := w.document("a1", "book/1").open(), w.document("a2", "book/2").open()
		x := w.document("x", "book").open()
		b1 := w.document("b", "book/1").open()
		b2 := w.document("b", "book/2").beside(b1).open()
		a1.channel.Deafen(true)
		a2.channel.Deafen(true)
		asked := b1.asks(t.Context(), autosave.EditOptions{Force: true, Grace: 8 * time.Second})
		require.ErrorIs(t, b2.RequestEdit(t.Context(), autosave.EditOptions{}), autosave.ErrHandoverNoAnswer)
		require.NoError(t, <-asked)
		assert.True(t, x.ReadOnly())
	})
}

// Another script of the origin asks with a strange grace. The waiting page has its turn soon after the editor is closed.
func TestWaiterAroundEnduresAStrangeGrace(t *testing.T) {
	for _, grace := range []time.Duration{math.MinInt64, -time.Hour, math.MaxInt64} {
		virtual(t, func(t *testing.T, w *world) {
			a := w.document("a", "book/1")
			a.config.OnHandover = refuses
			a.open()
			x := w.document("x", "book").open()
			require.NoError(t, w.network.Join().Post(autosave.Message{Kind: autosave.EditRequest, Round: "r", From: "script", Document: "//book/1", Grace: grace}))
			require.NoError(t, a.Dispose(t.Context()))
			w.sleep(2 * time.Second)
			assert.False(t, x.ReadOnly())
		})
	}
}
