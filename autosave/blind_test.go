package autosave_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/lock"
)

// quietChannel says nothing of the page's leases while it is quiet, as a page that is busy for longer than a roll call.
type quietChannel struct {
	lock.Channel
	quiet *atomic.Bool
}

func (q quietChannel) Post(m lock.Message) error {
	if q.quiet.Load() {
		return nil
	}
	return q.Channel.Post(m)
}

// The editor below offers its lock, and is too busy just then to say that it holds it. The asker looks again.
func TestOfferIsTakenAlthoughOneLookIsBlind(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		var quiet atomic.Bool
		a := w.document("a", "book/1")
		a.options.Channel = quietChannel{a.options.Channel, &quiet}
		a.open()
		b := w.document("b", "book").open()
		quiet.Store(true)
		asked := b.asks(t.Context(), autosave.EditOptions{})
		w.sleep(time.Second)
		quiet.Store(false)
		require.NoError(t, <-asked)
		assert.Less(t, time.Since(w.start), 4*time.Second)
	})
}

// The editor below offers its lock, and never says that it holds it. Whenever it edits, it types. Force takes the lock only while the editor
// offers it.
func TestForceTakesNothingAfterAnOffer(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.document("a", "book/1")
		a.options.Channel = silentChannel{a.options.Channel}
		a.open()
		b := w.document("b", "book").open()
		a.typed("x")
		asked := b.asks(t.Context(), autosave.EditOptions{Force: true})
		for range 300 {
			w.sleep(100 * time.Millisecond)
			if !a.ReadOnly() {
				a.typed("x")
			}
		}
		require.NoError(t, <-asked)
		saved, err := a.store.Read(t.Context(), autosave.Current)
		require.NoError(t, err)
		assert.Equal(t, a.shows(), string(saved))
	})
}

// One editor below offers its lock, the other one is frozen. Force takes both.
func TestForceTakesFromAFrozenEditorBesideOneThatOffers(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, s := w.document("a", "book/1").open(), w.document("s", "book/2")
		s.options.Channel = silentChannel{s.options.Channel}
		s.open()
		b := w.document("b", "book").open()
		s.channel.Deafen(true)
		require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{Force: true}))
		assert.False(t, b.ReadOnly())
		assert.True(t, a.ReadOnly())
		assert.Less(t, time.Since(w.start), 2*autosave.DefaultGrace)
	})
}
