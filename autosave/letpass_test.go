package autosave_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
)

// A page waits for a document around the one that another page asks for. The editor refuses, and is closed. The waiting page has its turn
// at once.
func TestWaiterAroundHasItsTurnAfterARefusal(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.document("a", "book/1")
		a.config.OnHandover = refuses
		a.open()
		x := w.document("x", "book").open()
		b := w.document("b", "book/1").open()
		require.ErrorIs(t, b.RequestEdit(t.Context(), autosave.EditOptions{}), autosave.ErrHandoverRefused)
		require.NoError(t, b.Dispose(t.Context()))
		require.NoError(t, a.Dispose(t.Context()))
		w.sleep(time.Second)
		assert.False(t, x.ReadOnly())
	})
}

// The page that was let pass edits, and is closed. The waiting page has its turn at once.
func TestWaiterAroundHasItsTurnAfterTheNextEditor(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.document("a", "book/1").open()
		x := w.document("x", "book").open()
		b := w.document("b", "book/1").open()
		require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{}))
		require.NoError(t, a.Dispose(t.Context()))
		w.sleep(time.Second)
		require.NoError(t, b.Dispose(t.Context()))
		w.sleep(time.Second)
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

// The editor accepts, and its offer does not arrive. Force takes the lock after all the time that the editor has, and the waiting page still lets it pass.
func TestWaiterAroundLetsForcePassAfterAnAnswer(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.document("a", "book/1").open()
		x := w.document("x", "book").open()
		b := w.document("b", "book/1")
		b.config.Channel = lateOffers{b.channel, "", autosave.EditGranted, time.Hour}
		b.open()
		require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{Force: true}))
		assert.False(t, b.ReadOnly())
		assert.True(t, x.ReadOnly())
	})
}
