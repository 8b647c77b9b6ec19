package autosave_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/lock"
)

// waiters returns the owners that wait for the lock.
func (w *world) waiters() (owners []string) {
	w.Helper()
	_, waiting, err := w.manager("reader").Inspect(w.Context())
	require.NoError(w, err)
	for _, waits := range waiting {
		owners = append(owners, waits.OwnerID)
	}
	return owners
}

// A page that sleeps or edits does not wait for the lock any more.
func TestPageLeavesTheQueue(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.tab("a")
		b, c := w.tab("b"), w.tab("c")
		w.sleep(time.Second)
		require.Equal(t, []string{"b", "c"}, w.waiters())
		require.NoError(t, b.Suspend(t.Context()))
		w.sleep(time.Second)
		assert.Equal(t, []string{"c"}, w.waiters())
		require.NoError(t, c.RequestEdit(t.Context(), autosave.EditOptions{}))
		w.sleep(time.Second)
		assert.Equal(t, []string{"a"}, w.waiters())
	})
}

// The page that asks is suspended or closed before the editor has decided. The editor goes on.
func TestEditorGoesOnWhenTheRequestIsWithdrawn(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*page) error
		want error
	}{
		"suspended": {func(p *page) error { return p.Suspend(context.Background()) }, autosave.ErrReadOnly},
		"closed":    {func(p *page) error { return p.Dispose(context.Background()) }, autosave.ErrDisposed},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a := w.prepare("a")
				a.config.OnHandover = func(context.Context, string) error { time.Sleep(time.Second); return nil }
				a.open()
				b := w.tab("b")
				asked := b.asks(t.Context(), autosave.EditOptions{})
				require.NoError(t, c.end(b))
				require.ErrorIs(t, <-asked, c.want)
				w.sleep(2 * time.Second)
				assert.False(t, a.ReadOnly())
				assert.Equal(t, autosave.PhaseIdle, a.State().Phase)
			})
		})
	}
}

// The page is suspended while it finds out which page to take the lock from. It takes nothing.
func TestSuspendedPageTakesNothing(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.channel.Deafen(true)
		a.options.Channel = late{a.options.Channel}
		a.open()
		b := w.tab("b")
		w.sleep(time.Second)
		asked := b.asks(t.Context(), force)
		w.sleep(1050 * time.Millisecond)
		require.NoError(t, b.Suspend(t.Context()))
		require.ErrorIs(t, <-asked, autosave.ErrReadOnly)
		w.sleep(time.Minute)
		assert.True(t, b.ReadOnly())
		assert.False(t, a.ReadOnly())
	})
}

// unqueryableLocks is a lock that does not tell who holds it.
type unqueryableLocks struct{ autosave.Locks }

func (unqueryableLocks) Inspect(context.Context) ([]lock.Holder, []lock.Waiter, error) {
	return nil, nil, nil
}

// A page without standby does not know that another page edits. Without force it takes the lock from nobody.
func TestPageThatKnowsNoEditorStealsNothing(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.channel.Deafen(true)
		a.open()
		b := w.prepare("b")
		b.config.NoStandby = true
		b.locks = func(l autosave.Locks) autosave.Locks { return unqueryableLocks{l} }
		b.open()
		require.ErrorIs(t, b.RequestEdit(t.Context(), autosave.EditOptions{}), autosave.ErrHandoverNoAnswer)
		assert.False(t, a.ReadOnly())
	})
}

// The turn of the page that asks comes just before it would take the lock by force. It does not take the lock from itself.
func TestPageThatLoadsTakesNothing(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.channel.Deafen(true)
		a.open()
		b := w.prepare("b")
		b.files.Before = func(operation string) {
			if strings.HasPrefix(operation, "list history") {
				time.Sleep(time.Second)
			}
		}
		b.open()
		asked := b.asks(t.Context(), force)
		w.sleep(900 * time.Millisecond)
		require.NoError(t, a.manager.Close(t.Context()))
		require.NoError(t, <-asked)
		w.sleep(time.Minute)
		lease, edits := b.Lease()
		require.True(t, edits)
		assert.Equal(t, int64(2), lease.Token)
		assert.Equal(t, 1, b.count(autosave.EventEditable))
	})
}

// held is a channel that keeps a page busy while it posts a message of a kind, until it is let go.
type held struct {
	autosave.Channel
	kind autosave.MessageKind
	let  chan struct{}
}

func (h held) Post(m autosave.Message) error {
	if m.Kind == h.kind {
		<-h.let
	}
	return h.Channel.Post(m)
}

// Two pages have asked and given up while the editor was busy. The editor goes on, and its user is not asked about the second one.
func TestNextRequestThatWasWithdrawnIsForgotten(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		busy := held{a.channel, autosave.EditAccepted, make(chan struct{})}
		a.config.Channel = busy
		var asked []string
		a.config.OnHandover = func(_ context.Context, from string) error { asked = append(asked, from); return nil }
		a.open()
		ghost := w.network.Join()
		post := func(kind autosave.MessageKind, from string) {
			require.NoError(t, ghost.Post(autosave.Message{Kind: kind, Round: from, From: from}))
		}
		post(autosave.EditRequest, "b")
		w.sleep(time.Second)
		post(autosave.EditCancelled, "b")
		post(autosave.EditRequest, "c")
		post(autosave.EditCancelled, "c")
		close(busy.let)
		w.sleep(time.Second)
		assert.False(t, a.ReadOnly())
		assert.NotContains(t, asked, "c")
	})
}
