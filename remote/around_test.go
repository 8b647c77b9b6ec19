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
	return h.vetoing(t, name, nil, path...)
}

// vetoing is below for a page that is asked before a handover.
func (h *home) vetoing(t *testing.T, name string, veto func(context.Context, string) error, path ...string) *writer {
	m := h.machine(name, autosave.NewLayout(h.disk.Client(), autosavetest.SHA256))
	return m.writer(t, name, func(c *autosave.Config) {
		c.Lock.Path, c.OnHandover = path, veto
		var err error
		c.Channel, err = remote.NewChannel(m.document, h.network.Join()).At(path)
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

// A page opens the document around the wanted one while the editor, in the same browser, saves for the handover. It lets the handover pass.
func TestPageThatComesDuringTheHandoverLetsItPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newInternet().home("A")
		a := h.vetoing(t, "a", func(context.Context, string) error { time.Sleep(2 * time.Second); return nil }, "book", "1")
		b := h.below(t, "b", "book", "1")
		asked := make(chan error, 1)
		go func() { asked <- b.RequestEdit(context.Background(), autosave.EditOptions{}) }()
		sleep(time.Second)
		around := h.below(t, "around", "book")
		require.NoError(t, <-asked)
		assert.True(t, a.State().ReadOnly)
		assert.False(t, b.State().ReadOnly)
		assert.True(t, around.State().ReadOnly)
	})
}

// Two pages on other machines edit documents below the wanted one. Both save and hand over, the second one later than the first one.
func TestEditorsBelowOnOtherMachinesAreAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		one := n.home("A").below(t, "one", "book", "1")
		two := n.home("B").vetoing(t, "two", func(context.Context, string) error { time.Sleep(2 * time.Second); return nil }, "book", "2")
		book := n.home("C").below(t, "book", "book")
		sleep(time.Second)
		one.type_("first")
		two.type_("second")
		require.NoError(t, book.RequestEdit(context.Background(), autosave.EditOptions{}))
		assert.False(t, book.State().ReadOnly)
		for _, w := range []*writer{one, two} {
			assert.True(t, w.State().ReadOnly)
		}
		assert.Equal(t, "first", one.now())
		assert.Equal(t, "second", two.now())
	})
}
