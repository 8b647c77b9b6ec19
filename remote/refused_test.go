package remote_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
	"github.com/holdfast-dev/holdfast/remote"
)

// The answers of a server that does not know the user, and of one that knows the user and does not permit the request.
var (
	unknownUser = remote.Reply{Status: 401, Error: "unauthenticated", Message: "Sign in."}
	forbidden   = remote.Reply{Status: 403, Error: "not_allowed", Message: "You may not do this here."}
)

// refuseAll makes the server answer every request with r, or none if r is zero.
func (n *internet) refuseAll(r remote.Reply) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refuse = r
}

// forbidSaving makes the server refuse to save, or stop refusing.
func (n *internet) forbidSaving(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refuseSaving = remote.Reply{}
	if on {
		n.refuseSaving = forbidden
	}
}

func TestRefusedAcquisitionEndsWithNotAllowed(t *testing.T) {
	for name, answer := range map[string]remote.Reply{"unknown": unknownUser, "forbidden": forbidden} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newInternet()
				n.refuseAll(answer)
				m := n.machine("A")
				manager, err := lock.NewManager(lock.Config{OwnerID: "A", Backends: []lock.Backend{m.document.Backend()}})
				require.NoError(t, err)
				defer func() { require.NoError(t, manager.Close(context.Background())) }()
				for _, opts := range []lock.AcquireOptions{{}, {IfAvailable: true}, {Path: []string{"a"}}} {
					began, requests := time.Now(), len(n.requests())
					_, err = manager.Acquire(context.Background(), opts)
					require.ErrorIs(t, err, lock.ErrNotAllowed)
					assert.Contains(t, err.Error(), answer.Message)
					var e *lock.Error
					require.ErrorAs(t, err, &e)
					assert.False(t, e.Retryable())
					assert.Zero(t, time.Since(began), "it is final")
					assert.LessOrEqual(t, len(n.requests())-requests, 2)
				}
			})
		})
	}
}

func TestRefusedRenewalEndsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		m := n.machine("A")
		manager, err := lock.NewManager(lock.Config{OwnerID: "A", Backends: []lock.Backend{m.document.Backend()}})
		require.NoError(t, err)
		defer func() { _ = manager.Close(context.Background()) }()
		lease, err := manager.Acquire(context.Background(), lock.AcquireOptions{})
		require.NoError(t, err)
		n.refuseAll(unknownUser)
		_, err = lease.Renew(context.Background())
		require.ErrorIs(t, err, lock.ErrNotAllowed)
		<-lease.Done()
		assert.ErrorIs(t, lease.Err(), lock.ErrNotAllowed)
	})
}

// The server refuses the token of the user when a page releases its lease, and so keeps the lock. The page gets to know that.
// When the server knows the user again, the next request ends the lock.
func TestRefusedReleaseIsNoRelease(t *testing.T) {
	eachTarget(t, func(t *testing.T, opts lock.AcquireOptions) {
		n := newInternet()
		a := open(t, n, locktest.NewSpace(), "A", "a")
		lease := a.acquire(opts)
		n.refuseAll(unknownUser)
		require.ErrorIs(t, lease.Release(t.Context()), lock.ErrReleaseFailed)
		n.refuseAll(remote.Reply{})
		assert.Len(t, n.places(), 1)
		a.release(a.acquire(at("elsewhere")))
		assert.Empty(t, n.places())
	})
}

// The server grants a lock, but the answer is lost, and the server refuses the token of the user when the page gives the acquisition
// up. When the server knows the user again, the next request ends the lock.
func TestRefusedGiveUpIsRepeated(t *testing.T) {
	eachTarget(t, func(t *testing.T, opts lock.AcquireOptions) {
		n := newInternet()
		a := open(t, n, locktest.NewSpace(), "A", "a")
		n.answer = func(r remote.Request) error {
			if r.Method != "POST" {
				return nil
			}
			n.refuseAll(unknownUser)
			return errOffline
		}
		opts.IfAvailable = true
		_, err := a.Acquire(t.Context(), opts)
		require.ErrorIs(t, err, lock.ErrTimeout)
		n.answer = nil
		n.refuseAll(remote.Reply{})
		assert.Len(t, n.places(), 1)
		a.release(a.acquire(at("elsewhere")))
		assert.Empty(t, n.places())
	})
}

// The server refuses a page that edits, for good. The page becomes read-only, keeps its words as a draft and asks no more.
func TestRefusedPageIsReadOnlyAndKeepsItsWords(t *testing.T) {
	for name, refuse := range map[string]func(*internet){
		"the user is unknown":           func(n *internet) { n.refuseAll(unknownUser) },
		"nothing is permitted":          func(n *internet) { n.refuseAll(forbidden) },
		"saving alone is not permitted": func(n *internet) { n.forbidSaving(true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newInternet()
				w := n.journalling("A").saved(t, "A", "saved, ")
				refuse(n)
				w.type_("refused")
				_, err := w.FlushNow(context.Background())
				require.ErrorIs(t, err, lock.ErrNotAllowed)
				sleep(time.Second)
				assert.True(t, w.State().ReadOnly)
				require.ErrorIs(t, w.State().LastErr, lock.ErrNotAllowed)
				assert.Len(t, w.readonly, 1)
				left, err := w.Drafts(context.Background())
				require.NoError(t, err)
				require.Len(t, left, 1)
				assert.Equal(t, "saved, refused", w.now(), "the page still shows it")
				_, err = w.FlushNow(context.Background())
				require.ErrorIs(t, err, lock.ErrNotAllowed)

				requests := len(n.requests())
				sleep(10 * time.Minute)
				assert.Less(t, len(n.requests())-requests, 5, "a final answer is not requested again")
				err = w.RequestEdit(context.Background(), autosave.EditOptions{})
				if n.refuseSaving.Status == 0 {
					require.ErrorIs(t, err, lock.ErrNotAllowed)
				} else { // the page edits until it saves
					require.NoError(t, err)
					sleep(time.Second)
				}
				assert.True(t, w.State().ReadOnly)
				assert.Equal(t, "saved, refused", w.now())

				n.refuseAll(remote.Reply{})
				n.forbidSaving(false)
				require.NoError(t, w.RequestEdit(context.Background(), autosave.EditOptions{}))
				sleep(time.Second)
				assert.Equal(t, "saved, refused", string(n.content), "the words were saved when the user was known again")
				assert.NoError(t, w.State().LastErr)
			})
		})
	}
}

// The server refuses a page that waits for its turn. The page stops waiting and says why.
func TestRefusedWaiterStopsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		n.writer(t, "A")
		b := n.writer(t, "B")
		require.True(t, b.State().ReadOnly)
		require.NotErrorIs(t, b.State().LastErr, lock.ErrNotAllowed)
		n.refuseAll(unknownUser)
		sleep(time.Minute)
		require.ErrorIs(t, b.State().LastErr, lock.ErrNotAllowed)
		requests := len(n.requests())
		sleep(10 * time.Minute)
		assert.Less(t, len(n.requests())-requests, 5)
	})
}

// A page may lock a document whose content it may not read: it does not edit what it cannot show.
func TestPageThatMayNotReadDoesNotEdit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		n.mu.Lock()
		n.refuseReading = forbidden
		n.mu.Unlock()
		w := n.writer(t, "A")
		sleep(time.Minute)
		assert.True(t, w.State().ReadOnly)
		require.ErrorIs(t, w.State().LastErr, lock.ErrNotAllowed)
		assert.Empty(t, n.held(), "it keeps no lock that it cannot use")
	})
}
