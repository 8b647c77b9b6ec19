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
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
	"github.com/holdfast-dev/holdfast/remote"
)

// answering opens a page that shows a document below the project, and answers the other tabs that look who edits.
func (h *home) answering(t *testing.T, network *locktest.Network, name string, path ...string) *writer {
	m := h.machine(name, autosave.NewLayout(h.disk.Client(), autosavetest.SHA256))
	manager, err := lock.NewManager(lock.Config{OwnerID: name, Backends: []lock.Backend{m.document.Backend()}, Channel: network.Join()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = manager.Close(context.Background()) })
	return m.writer(t, name, func(c *autosave.Config) {
		c.Lock.Path, c.Locks = path, manager
		c.Channel, err = remote.NewChannel(m.document, h.network.Join()).At(path)
		require.NoError(t, err)
		c.Store, err = m.store.At(path)
		require.NoError(t, err)
	})
}

// A page on another machine edits a document beside those of this browser, and began before them. It is not shown as their editor, and no
// handover between the tabs of this browser waits for it.
func TestEditorOfAnotherDocumentElsewhereIsInNobodysWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		far := n.home("A").answering(t, locktest.NewNetwork(), "far", "other")
		h, network := n.home("B"), locktest.NewNetwork()
		a := h.answering(t, network, "a", "book", "1")
		same, around, other := h.answering(t, network, "same", "book", "1"), h.answering(t, network, "around", "book"), h.answering(t, network, "other", "other")
		sleep(time.Second)
		require.False(t, a.State().ReadOnly)
		assert.Equal(t, "a", same.State().Holder.OwnerID)
		assert.Equal(t, "a", around.State().Holder.OwnerID)
		assert.Equal(t, "tab A", other.State().Holder.OwnerID)
		a.type_("typed just now")
		require.NoError(t, around.RequestEdit(context.Background(), autosave.EditOptions{}))
		assert.True(t, a.State().ReadOnly)
		assert.False(t, around.State().ReadOnly)
		assert.False(t, far.State().ReadOnly)
	})
}

// Pages on two other machines edit a document beside and one below that of this page. The one below keeps this page from editing, although the
// other one began before, and although a tab of this browser edits another document.
func TestEditorBelowElsewhereIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		h, network := n.home("B"), locktest.NewNetwork()
		own := h.answering(t, network, "own", "third")
		n.home("A").answering(t, locktest.NewNetwork(), "first", "other")
		n.home("C").answering(t, locktest.NewNetwork(), "below", "book", "1/2 %")
		pages := map[string]*writer{"around": h.answering(t, network, "around", "book"), "same": h.answering(t, network, "same", "book", "1/2 %")}
		sleep(time.Second)
		require.False(t, own.State().ReadOnly)
		for name, w := range pages {
			require.True(t, w.State().ReadOnly, name)
			require.NotNil(t, w.State().Holder, name)
			assert.Equal(t, "tab C", w.State().Holder.OwnerID, name)
		}
	})
}
