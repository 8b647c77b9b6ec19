package remote_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
	"github.com/holdfast-dev/holdfast/remote"
)

// fullBrowser is a browser whose tabs have a channel and records, as real ones have.
type fullBrowser struct {
	n       *internet
	space   *locktest.Space
	network *locktest.Network
	records *locktest.Records
}

func newHousehold(n *internet) *fullBrowser {
	return &fullBrowser{n: n, space: locktest.NewSpace(), network: locktest.NewNetwork(), records: &locktest.Records{}}
}

func (h *fullBrowser) open(t *testing.T, session, id string) *tab {
	return h.openOver(t, session, id, lock.Backend{Strategy: lock.WebLock, Resource: "holdfast:project", Locker: h.space.Client(id), Records: h.records})
}

func (h *fullBrowser) openOver(t *testing.T, session, id string, local lock.Backend) *tab {
	b := &browser{net: h.n, session: session}
	document := remote.NewDocument(remote.Config{Server: b, URL: "https://locks.example/", Document: "project", Name: "tab " + id, Local: local})
	m, err := lock.NewManager(lock.Config{OwnerID: id, Backends: []lock.Backend{document.Backend()}, Channel: h.network.Join()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, m.Close(context.Background())) })
	return &tab{Manager: m, t: t, browser: b}
}

// freeze holds the lock of this machine like a tab that is frozen while it waits for the server: it has no record and
// answers nothing.
func (h *fullBrowser) freeze(t *testing.T) lock.Grant {
	g, err := h.space.Client("frozen").Request(t.Context(), lock.Request{Wants: []lock.Want{{Name: "holdfast:project", Mode: lock.Exclusive}}})
	require.NoError(t, err)
	return g
}

func TestFrozenWaiterOfServerIsTakenOver(t *testing.T) {
	for _, strategy := range []lock.Strategy{lock.WebLock, lock.FileLock} { // a grant over the file that has no lease never expires
		t.Run(string(strategy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHousehold(newInternet())
				frozen := h.freeze(t)
				done := h.openOver(t, "B", "b", lock.Backend{Strategy: strategy, Resource: "holdfast:project", Locker: h.space.Client("b"), Records: h.records}).begin(context.Background(), patient)
				sleep(25 * time.Second)
				assert.Empty(t, done, "it may be slow to answer")
				sleep(15 * time.Second)
				require.NotEmpty(t, done)
				require.NoError(t, <-done)
				<-frozen.Lost()
			})
		})
	}
}

// behindAnotherMachine returns the tabs of a machine while another machine holds the lock.
func behindAnotherMachine(t *testing.T) (h *fullBrowser, release func()) {
	n := newInternet()
	other := open(t, n, locktest.NewSpace(), "A", "a")
	held := other.acquire(lock.AcquireOptions{})
	return newHousehold(n), func() { other.release(held) }
}

// A living tab keeps its place in the server's queue for as long as it waits, whoever waits behind it.
func TestLivingWaiterOfServerIsNotTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, release := behindAnotherMachine(t)
		long := patient
		long.Timeout = 24 * time.Hour
		first := h.open(t, "B", "b").begin(context.Background(), long)
		second := h.open(t, "B", "c").begin(context.Background(), long)
		sleep(time.Hour)
		require.Empty(t, first)
		release()
		require.NoError(t, <-first, "the first in line gets the lock first")
		assert.Empty(t, second)
	})
}

// A waiter whose lock on this machine is stolen waits on: time and retries are left.
func TestWaiterWhoseLocalLockIsStolenWaitsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, release := behindAnotherMachine(t)
		done := h.open(t, "B", "b").begin(context.Background(), patient)
		sleep(time.Second)
		stealer, err := h.space.Client("stealer").Request(t.Context(), lock.Request{Wants: []lock.Want{{Name: "holdfast:project", Mode: lock.Exclusive}}, Steal: true})
		require.NoError(t, err)
		sleep(time.Second)
		assert.Empty(t, done)
		require.NoError(t, stealer.Release(t.Context()))
		release()
		require.NoError(t, <-done)
	})
}

// Two browsers have one cookie, because somebody copied it, or one bearer token. Neither takes a lock of the other. A tab takes the lock of
// a tab of its own browser that is gone.
func TestBrowsersWithOneSecretWaitForEachOther(t *testing.T) {
	for name, opts := range map[string]lock.AcquireOptions{"document": patient, "place": {Path: []string{"x"}, Backoff: patient.Backoff}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, home := newInternet(), locktest.NewSpace()
				a := openIn(t, n, home.Client("a"), "A", "a", "one")
				next, b := openIn(t, n, home.Client("next"), "A", "next", "one"), openIn(t, n, locktest.NewSpace().Client("b"), "A", "b", "two")
				first := a.acquire(opts)
				waiting := b.begin(t.Context(), opts)
				sleep(3 * time.Minute)
				assert.Len(t, a.Leases(), 1, "it is not robbed")
				assert.Empty(t, b.Leases())
				home.Kill("a")
				last := next.begin(t.Context(), opts)
				require.NoError(t, <-waiting, "it has waited for longer")
				assert.Greater(t, b.Leases()[0].Token, first.Token)
				sleep(3 * time.Minute)
				assert.Empty(t, next.Leases())
				b.release(b.Leases()[0])
				require.NoError(t, <-last)
			})
		})
	}
}
