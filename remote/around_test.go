package remote_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/remote"
)

// below opens a page that shows a document below the project.
func (h *home) below(t *testing.T, name string, path ...string) *writer {
	m := h.machine(name, autosave.NewLayout(h.disk.Client(), autosavetest.SHA256))
	return m.writer(t, name, func(c *autosave.Config) {
		c.Lock.Path = path
		var err error
		c.Channel, err = remote.NewChannel(m.document, h.air.Join()).At(path)
		require.NoError(t, err)
		c.Store, err = m.store.At(path)
		require.NoError(t, err)
	})
}

// A page waits for a document below the one that a page on another machine edits. Another page of its browser asks for that one.
func TestWaiterBelowLetsAQuestionPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := n.home("A").tab(t, "a")
		h := n.home("B")
		below := h.below(t, "below", "book")
		b := h.tab(t, "b")
		sleep(time.Second)
		a.type_("typed just now")
		require.NoError(t, b.RequestEdit(context.Background(), autosave.EditOptions{}))
		assert.Equal(t, "typed just now", b.now())
		sleep(time.Minute)
		assert.True(t, a.State().ReadOnly)
		assert.True(t, below.State().ReadOnly)
		require.NoError(t, b.Dispose(context.Background()))
		require.NoError(t, a.Dispose(context.Background()))
		sleep(20 * time.Second)
		assert.False(t, below.State().ReadOnly)
	})
}
