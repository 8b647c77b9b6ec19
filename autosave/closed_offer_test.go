package autosave_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
)

// lagging is the channel of a page that hears all others late.
type lagging struct {
	autosave.Channel
	by time.Duration
}

func (l lagging) Listen(handle func(autosave.Message)) (func(), error) {
	return l.Channel.Listen(func(m autosave.Message) { time.AfterFunc(l.by, func() { handle(m) }) })
}

// The editor is closed right after its offer, and the next page edits. The asker reads the offer then: it asks that page, too, and robs nobody.
func TestOfferOfAClosedEditorCountsForNobodyElse(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		b := w.prepare("b")
		b.config.Channel = lagging{b.channel, 500 * time.Millisecond}
		b.config.NoStandby = true
		b.open()
		c := w.prepare("c")
		c.config.OnHandover = refuses
		c.open()
		asked := b.asks(t.Context(), autosave.EditOptions{})
		w.sleep(time.Millisecond)
		require.NoError(t, a.Dispose(t.Context()))
		w.sleep(time.Millisecond)
		require.False(t, c.ReadOnly())
		c.typed("meanwhile")
		require.ErrorIs(t, <-asked, autosave.ErrHandoverRefused)
		assert.False(t, c.ReadOnly())
	})
}
