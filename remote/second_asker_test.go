package remote_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
)

// A tab asks a page on another machine. A second tab of its browser asks just after or later. It learns that another page has asked, and its
// force takes nothing from the tab that waits for the answer.
func TestSecondTabThatAsksLearnsOfTheFirst(t *testing.T) {
	for name, force := range map[string]bool{"without force": false, "with force": true} {
		for _, later := range []time.Duration{0, time.Millisecond, 500 * time.Millisecond} {
			t.Run(name+", "+later.String()+" later", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newInternet()
					a := n.home("A").tab(t, "a", func(c *autosave.Config) {
						c.OnHandover = func(context.Context, string) error { time.Sleep(2 * time.Second); return nil }
					})
					h := n.home("B")
					first, second := h.tab(t, "b1"), h.tab(t, "b2")
					sleep(time.Second)
					a.type_("typed just now")
					asked := make(chan error, 1)
					go func() { asked <- first.RequestEdit(context.Background(), autosave.EditOptions{}) }()
					sleep(later)
					require.ErrorIs(t, second.RequestEdit(context.Background(), autosave.EditOptions{Force: force, Grace: time.Second}), autosave.ErrHandoverBusy)
					require.NoError(t, <-asked)
					assert.Equal(t, "typed just now", first.now())
					sleep(time.Minute)
					assert.False(t, first.State().ReadOnly)
				})
			})
		}
	}
}

// A tab without standby asks a page on another machine, while other tabs of its browser wait there.
func TestTabWithoutStandbyAsksPastThoseThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := n.home("A").tab(t, "a")
		h := n.home("B")
		first, second := h.tab(t, "b1"), h.tab(t, "b2")
		b := h.tab(t, "b3", func(c *autosave.Config) { c.NoStandby = true })
		sleep(time.Second)
		a.type_("typed just now")
		require.NoError(t, b.RequestEdit(context.Background(), autosave.EditOptions{}))
		assert.Equal(t, "typed just now", b.now())
		require.NoError(t, a.Dispose(context.Background()))
		require.NoError(t, b.Dispose(context.Background()))
		sleep(time.Second)
		assert.NotEqual(t, first.State().ReadOnly, second.State().ReadOnly)
	})
}
