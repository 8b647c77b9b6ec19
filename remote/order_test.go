package remote_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/remote"
)

// unreachable is an OnHandover that consents, and loses the server.
func unreachable(n *internet) func(*autosave.Config) {
	return func(c *autosave.Config) {
		c.OnHandover = func(context.Context, string) error {
			time.Sleep(100 * time.Millisecond) // the server learns that the page accepts
			n.set(true)
			return nil
		}
	}
}

// The holder offers the lock, and cannot reach the server until the offer has expired. It does not know whether a release has arrived, so it
// does not edit beside the page that asked, and that page gets the lock when the server is back.
func TestExpiredOfferIsPassedOnLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := n.home("A").tab(t, "a", unreachable(n))
		b := n.home("B").tab(t, "b")
		sleep(time.Second)
		go func() { _ = b.RequestEdit(context.Background(), autosave.EditOptions{}) }()
		sleep(time.Second)
		require.Equal(t, autosave.PhaseReadonly, a.State().Phase)
		sleep(10 * time.Second)
		require.True(t, a.State().ReadOnly)
		n.set(false)
		sleep(20 * time.Second)
		assert.True(t, a.State().ReadOnly)
		assert.Equal(t, "B", n.held())
		assert.False(t, b.State().ReadOnly)
	})
}

// attended is a page that holds a lock on the server, and the messages that its channel passes to it.
type attended struct {
	manager *lock.Manager
	lease   lock.Lease
	channel *remote.Channel
	id      string // of the document
	mu      sync.Mutex
	heard   []autosave.Message
}

func (h *home) attended(t *testing.T, path ...string) *attended {
	d := remote.NewDocument(remote.Config{Server: &browser{net: h.n, session: h.session}, URL: "https://locks.example", Document: "project",
		Local: lock.Backend{Strategy: lock.WebLock, Resource: "holdfast:project", Locker: h.space.Client("a")}})
	a := &attended{manager: machine{document: d}.manager(t)}
	var err error
	a.lease, err = a.manager.Acquire(context.Background(), at(path...))
	require.NoError(t, err)
	a.channel, err = remote.NewChannel(d, h.network.Join()).At(path)
	require.NoError(t, err)
	a.id, err = d.ID(path)
	require.NoError(t, err)
	stop, err := a.channel.Listen(func(m autosave.Message) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.heard = append(a.heard, m)
	})
	require.NoError(t, err)
	t.Cleanup(stop)
	a.edits(t)
	return a
}

func (a *attended) edits(t *testing.T) {
	require.NoError(t, a.channel.Post(autosave.Message{Kind: autosave.Edits, Holder: lock.Holder{Token: a.lease.Token}}))
	synctest.Wait()
}

// asked makes the server ask the holder of the lease, and returns what the page is asked.
func (a *attended) asked(n *internet) []autosave.Message {
	n.mu.Lock()
	n.notify("document.asked", &inquiry{id: "7", document: a.id, token: a.lease.Token, by: "B"})
	n.mu.Unlock()
	return a.messages()
}

func (a *attended) messages() []autosave.Message {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.heard
}

// The holder offers the lock while the server accepts no request, and then keeps it. Later requests of the page do not release it.
func TestLockThatWasNotPassedOnIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := n.home("A").attended(t, "text")
		questions := a.asked(n)
		require.Len(t, questions, 1)
		n.refuseAll(remote.Reply{Status: 429, Error: "rate_limited"})
		n.mu.Lock()
		n.delay = func(remote.Request) bool { time.Sleep(300 * time.Millisecond); return false } // no release is under way when the offer ends
		n.mu.Unlock()
		require.NoError(t, a.channel.Post(autosave.Message{Kind: autosave.EditGranted, Round: questions[0].Round}))
		sleep(16 * time.Second)
		n.refuseAll(remote.Reply{})
		sleep(time.Second)
		_, err := a.manager.Acquire(context.Background(), at("other"))
		require.NoError(t, err)
		sleep(time.Minute)
		require.NoError(t, a.lease.Err())
		assert.Len(t, n.places(), 2)
	})
}

// A page announces again that it edits, as after a draft became its content. It is asked once by each question.
func TestPageThatAnnouncesItselfTwiceIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := n.home("A").attended(t)
		a.edits(t)
		assert.Equal(t, 1, n.connections())
		assert.Len(t, a.asked(n), 1)
	})
}

// The server postpones the release of a holder that offers the lock, and the client that asked gives up. The holder edits again and keeps the lock.
func TestEndedQuestionPassesNothingOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := n.home("A").attended(t, "text")
		questions := a.asked(n)
		require.Len(t, questions, 1)
		n.refuseAll(remote.Reply{Status: 429, Error: "rate_limited"})
		require.NoError(t, a.channel.Post(autosave.Message{Kind: autosave.EditGranted, Round: questions[0].Round}))
		sleep(500 * time.Millisecond)
		n.mu.Lock()
		n.notify("document.ask_ended", &inquiry{id: "7", document: a.id, token: a.lease.Token, by: "B"})
		n.mu.Unlock()
		n.refuseAll(remote.Reply{})
		sleep(time.Minute)
		require.Len(t, a.messages(), 2, "the tab has the message that the question has ended")
		require.NoError(t, a.lease.Err())
		assert.Len(t, n.places(), 1)
	})
}

// A question ends, as the answer to the acceptance says, while the offer of the lock waits to be sent. The page edits on then, so no release
// may be sent.
func TestNoReleaseFollowsTheEndOfItsQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := n.home("A").attended(t)
		questions := a.asked(n)
		require.Len(t, questions, 1)
		var releases atomic.Int64
		n.mu.Lock()
		n.delay = func(r remote.Request) bool {
			if r.Method == http.MethodDelete {
				releases.Add(1)
			}
			time.Sleep(100 * time.Millisecond)
			return false
		}
		n.mu.Unlock()
		for _, kind := range []autosave.MessageKind{autosave.EditAccepted, autosave.EditGranted} {
			require.NoError(t, a.channel.Post(autosave.Message{Kind: kind, Round: questions[0].Round}))
		}
		sleep(5 * time.Second)
		require.Equal(t, autosave.EditCancelled, a.messages()[1].Kind)
		assert.Zero(t, releases.Load())
		require.NoError(t, a.lease.Err())
	})
}
