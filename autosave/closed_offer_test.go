package autosave_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
)

// lagging is the channel of a page that receives all messages late.
type lagging struct {
	autosave.Channel
	by time.Duration
}

func (l lagging) Listen(handle func(autosave.Message)) (func(), error) {
	return l.Channel.Listen(func(m autosave.Message) { time.AfterFunc(l.by, func() { handle(m) }) })
}

// The editor is closed right after its offer, and the next page edits. The asker reads the offer then: it asks that page, too, and steals nothing,
// also if that page is too busy to say in time that it holds the lock.
func TestOfferOfAClosedEditorCountsForNobodyElse(t *testing.T) {
	for name, busy := range map[string]bool{"at rest": false, "busy": true} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a := w.tab("a")
				b := w.prepare("b")
				b.config.Channel = lagging{b.channel, 500 * time.Millisecond}
				b.config.NoStandby = true
				b.open()
				c := w.prepare("c")
				if busy {
					c.options.Channel = silentChannel{c.options.Channel}
				}
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
		})
	}
}

// Two pages edit documents below the wanted one. Both are too busy to say in time what they hold. Their offers count for their own documents
// only.
func TestOffersOfBusyEditorsBelowCount(t *testing.T) {
	for name, c := range map[string]struct {
		deaf  bool
		fails error
	}{"both offer": {}, "one does not answer": {true, autosave.ErrHandoverNoAnswer}} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a, s := w.document("a", "book/1"), w.document("s", "book/2")
				for _, p := range []*page{a, s} {
					p.options.Channel = silentChannel{p.options.Channel}
					p.open()
				}
				b := w.document("b", "book").open()
				s.channel.Deafen(c.deaf)
				require.ErrorIs(t, b.RequestEdit(t.Context(), autosave.EditOptions{}), c.fails)
				w.sleep(time.Second)
				assert.Equal(t, c.deaf, b.ReadOnly())
				assert.Equal(t, !c.deaf, a.ReadOnly())
				assert.Equal(t, !c.deaf, s.ReadOnly())
			})
		})
	}
}

// crashing is the channel of a page that crashes: it does not say that it leaves.
type crashing struct{ autosave.Channel }

func (c crashing) Post(m autosave.Message) error {
	if m.Kind == autosave.EditLeft {
		return nil
	}
	return c.Channel.Post(m)
}

// An editor has offered the lock and crashes while another one still saves. The next page edits the first document, or one below it, and is
// too busy to say in time what it holds. It is asked: the former offer does not count for it.
func TestOfferOfAClosedEditorCountsNotForABusySuccessor(t *testing.T) {
	for _, path := range []string{"book/1", "book/1/x"} {
		t.Run(path, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a, s, c := w.document("a", "book/1"), w.document("s", "book/2"), w.document("c", path)
				a.config.Channel = crashing{a.channel}
				s.vetoes(2*time.Second, nil)
				c.options.Channel = silentChannel{c.options.Channel}
				c.vetoes(2500*time.Millisecond, errNotNow)
				for _, p := range []*page{a, s, c} {
					p.open()
				}
				b := w.document("b", "book").open()
				asked := b.asks(t.Context(), autosave.EditOptions{})
				w.sleep(time.Second)
				require.NoError(t, a.Dispose(t.Context()))
				w.sleep(100 * time.Millisecond)
				require.False(t, c.ReadOnly())
				require.ErrorIs(t, <-asked, autosave.ErrHandoverRefused)
				assert.False(t, c.ReadOnly())
				w.sleep(time.Second)
			})
		})
	}
}

// A page took the lock from an editor around its document, and keeps that document too. It is too busy to say so in time. Its offer counts for
// both.
func TestOfferOfABusyEditorThatKeepsMoreCounts(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.document("a", "book").open()
		b := w.document("b", "book/1")
		b.options.Channel = silentChannel{b.options.Channel}
		b.open()
		require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{}))
		c := w.document("c", "").open()
		require.NoError(t, c.RequestEdit(t.Context(), autosave.EditOptions{}))
		assert.False(t, c.ReadOnly())
	})
}
