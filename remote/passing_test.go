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

// neverTwoEdit checks for some time that never two of the pages edit.
func neverTwoEdit(t *testing.T, long time.Duration, pages ...*writer) {
	for end := time.Now().Add(long); time.Now().Before(end); sleep(50 * time.Millisecond) {
		editing := 0
		for _, w := range pages {
			if !w.State().ReadOnly {
				editing++
			}
		}
		require.LessOrEqual(t, editing, 1)
	}
}

// The holder releases the lock for a page on another machine, and its answers are lost, or its release is late. It does not edit beside
// that page, and does not lose what it has saved.
func TestReleaseWithoutAnAnswerIsARelease(t *testing.T) {
	for name, fault := range map[string]func(*internet){
		"its answers are lost": func(n *internet) {
			var lost atomic.Int64
			n.answer = func(r remote.Request) error {
				if r.Method == http.MethodDelete {
					lost.CompareAndSwap(0, r.Token)
				}
				if r.Token != 0 && r.Token == lost.Load() {
					return errOffline
				}
				return nil
			}
		},
		"the release is late": func(n *internet) {
			end := time.Now().Add(20 * time.Second)
			n.delay = func(r remote.Request) bool {
				late := r.Method == http.MethodDelete && r.Token != 0 && time.Now().Before(end)
				if late {
					time.Sleep(12 * time.Second)
				}
				return late
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newInternet()
				a, b := n.home("A").tab(t, "a"), n.home("B").tab(t, "b")
				sleep(time.Second)
				a.type_("by A")
				n.mu.Lock()
				fault(n)
				n.mu.Unlock()
				go func() { _ = b.RequestEdit(context.Background(), autosave.EditOptions{}) }()
				neverTwoEdit(t, 40*time.Second, a, b)
				require.False(t, b.State().ReadOnly)
				assert.Equal(t, "by A", b.now())
			})
		})
	}
}

// A page gives its question up while the release for it is under way, and the next page in line gets the lock. The former holder does not
// edit before it knows.
func TestHolderStaysReadOnlyIfTheAskerGivesUpDuringTheRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a, b, c := n.home("A").tab(t, "a"), n.home("B").tab(t, "b"), n.home("C").tab(t, "c")
		ctx, giveUp := context.WithCancel(context.Background())
		isRelease := func(r remote.Request) bool { return r.Method == http.MethodDelete && r.Token != 0 }
		n.mu.Lock()
		n.delay = func(r remote.Request) bool {
			if isRelease(r) {
				giveUp()
				time.Sleep(time.Second)
			}
			return isRelease(r)
		}
		n.answer = func(r remote.Request) error {
			if isRelease(r) {
				time.Sleep(3 * time.Second)
			}
			return nil
		}
		n.mu.Unlock()
		sleep(time.Second)
		go func() { _ = b.RequestEdit(ctx, autosave.EditOptions{}) }()
		neverTwoEdit(t, 10*time.Second, a, b, c)
		assert.True(t, a.State().ReadOnly)
		n.mu.Lock()
		n.delay, n.answer = nil, nil
		n.mu.Unlock()
	})
}

// A page passes its document on to a page on another machine, and its release or the answer is late. The lease nested in that of the document
// has ended before the other page edits, and none begins meanwhile.
func TestNestedLeaseEndsBeforeItsDocumentIsPassedOn(t *testing.T) {
	late := func(r remote.Request) error {
		if r.Method == http.MethodDelete && r.Token != 0 {
			time.Sleep(5 * time.Second)
		}
		return nil
	}
	for name, fault := range map[string]func(*internet){
		"the release is late": func(n *internet) { n.delay = func(r remote.Request) bool { return late(r) != nil } },
		"the answer is late":  func(n *internet) { n.answer = late },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newInternet()
				var locks *lock.Manager
				a, b := n.home("A").tab(t, "a", func(c *autosave.Config) { locks = c.Locks.(*lock.Manager) }), n.home("B").tab(t, "b")
				sleep(time.Second)
				n.mu.Lock()
				fault(n)
				n.mu.Unlock()
				require.False(t, a.State().ReadOnly)
				outer := locks.Leases()[0]
				nested, err := locks.Acquire(lock.Within(t.Context(), outer), lock.AcquireOptions{Path: []string{"x"}})
				require.NoError(t, err)
				go func() { _ = b.RequestEdit(context.Background(), autosave.EditOptions{}) }()
				sleep(time.Second)
				require.NoError(t, outer.Context().Err(), "its page does not know yet whether the lock was passed on")
				require.ErrorIs(t, nested.Err(), lock.ErrLost)
				_, err = locks.Acquire(lock.Within(t.Context(), outer), lock.AcquireOptions{Path: []string{"x"}})
				require.Error(t, err)
				sleep(time.Minute)
				require.False(t, b.State().ReadOnly)
			})
		})
	}
}

// A page passes its document on while a nested lease is being acquired, and learns it after the last look at the document's lease. The nested
// lease does not begin: the other page edits already.
func TestNoNestedLeaseBeginsAfterItsDocumentIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		var locks *lock.Manager
		a, b := n.home("A").tab(t, "a", func(c *autosave.Config) { locks = c.Locks.(*lock.Manager) }), n.home("B").tab(t, "b")
		sleep(time.Second)
		require.False(t, a.State().ReadOnly)
		outer := locks.Leases()[0]
		asks := sync.OnceFunc(func() { go func() { _ = b.RequestEdit(context.Background(), autosave.EditOptions{}) }() })
		n.mu.Lock()
		n.answer = func(r remote.Request) error {
			switch {
			case r.Token != outer.Token:
			case r.Method == http.MethodPut && r.Body == nil:
				asks()
				time.Sleep(3 * time.Second)
			case r.Method == http.MethodDelete:
				time.Sleep(4 * time.Second)
			}
			return nil
		}
		n.mu.Unlock()
		_, err := locks.Acquire(lock.Within(t.Context(), outer), lock.AcquireOptions{Path: []string{"x"}})
		require.Error(t, err)
		require.False(t, b.State().ReadOnly)
		sleep(time.Minute)
	})
}
