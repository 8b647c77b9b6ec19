package remote_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
	"github.com/holdfast-dev/holdfast/remote"
)

// tab is a manager of one browser whose leases hold on the server.
type tab struct {
	*lock.Manager
	t       *testing.T
	browser *browser

	mu  sync.Mutex
	log []string
}

// open opens a tab. Tabs with the same space are tabs of one browser.
func open(t *testing.T, n *internet, space *locktest.Space, session, id string) *tab {
	return openAt(t, n, space.Client(id), session, id)
}

// openAt opens a tab with its own lock between the tabs.
func openAt(t *testing.T, n *internet, local lock.Locker, session, id string) *tab {
	return openIn(t, n, local, session, id, "")
}

// openIn is openAt in a browser with an id of its own.
func openIn(t *testing.T, n *internet, local lock.Locker, session, id, browserID string) *tab {
	b := &browser{net: n, session: session}
	document := remote.NewDocument(remote.Config{Server: b, URL: "https://locks.example/", Document: "project", Name: "tab " + id, Browser: browserID,
		Local: lock.Backend{Strategy: lock.WebLock, Resource: "holdfast:project", Locker: local}})
	m, err := lock.NewManager(lock.Config{OwnerID: id, Backends: []lock.Backend{document.Backend()}})
	require.NoError(t, err)
	o := &tab{Manager: m, t: t, browser: b}
	m.Subscribe(func(e lock.Event) {
		o.mu.Lock()
		defer o.mu.Unlock()
		text := strings.TrimPrefix(string(e.Type), "lock:")
		if e.Err != nil {
			text += " " + string(e.Err.Code)
		}
		o.log = append(o.log, text)
	})
	t.Cleanup(func() { assert.NoError(t, m.Close(context.Background())) })
	return o
}

func (o *tab) told() []string {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	log := o.log
	o.log = nil
	return log
}

// toldItsWholeLife expects the events of a lease from the first attempt, through heartbeats, to its release.
func (o *tab) toldItsWholeLife() {
	o.t.Helper()
	log := o.told()
	assert.Equal(o.t, []string{"attempt", "acquired", "renew-scheduled", "renewed", "renew-scheduled"}, log[:5])
	assert.Equal(o.t, []string{"release-requested", "released"}, log[len(log)-2:])
}

func (o *tab) acquire(opts lock.AcquireOptions) lock.Lease {
	o.t.Helper()
	lease, err := o.Acquire(context.Background(), opts)
	require.NoError(o.t, err)
	return lease
}

// begin acquires in the background.
func (o *tab) begin(ctx context.Context, opts lock.AcquireOptions) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := o.Acquire(ctx, opts)
		done <- err
	}()
	synctest.Wait()
	return done
}

func (o *tab) release(l lock.Lease) {
	o.t.Helper()
	require.NoError(o.t, l.Release(context.Background()))
}

func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

var patient = lock.AcquireOptions{Backoff: lock.Backoff{MaxRetries: lock.Unlimited, Jitter: lock.NoJitter}}

func TestLeaseHoldsHereAndOnServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := open(t, n, locktest.NewSpace(), "A", "a")
		lease := a.acquire(lock.AcquireOptions{})
		assert.Equal(t, lock.Remote, lease.Strategy)
		assert.Equal(t, "https://locks.example/api/documents/project", lease.Resource)
		assert.Equal(t, int64(101), lease.Token)
		assert.Equal(t, 30*time.Second, lease.TTL)
		sleep(5 * time.Minute)
		assert.Equal(t, "A", n.held(), "heartbeats keep it")
		a.release(lease)
		assert.Empty(t, n.held())
		a.toldItsWholeLife()
	})
}

func TestBrowsersWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a, b := open(t, n, locktest.NewSpace(), "A", "a"), open(t, n, locktest.NewSpace(), "B", "b")
		first := a.acquire(lock.AcquireOptions{})
		waiting := b.begin(context.Background(), patient)
		sleep(3 * time.Minute)
		assert.Equal(t, "A", n.held())
		a.release(first)
		require.NoError(t, <-waiting)
		assert.Equal(t, "B", n.held())
		assert.Equal(t, []string{"attempt", "error acquire-denied", "waiting", "attempt"}, b.told()[:4])
		assert.Greater(t, b.Leases()[0].Token, first.Token)
	})
}

func TestTabsAskServerOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, space := newInternet(), locktest.NewSpace()
		a, b := open(t, n, space, "A", "a"), open(t, n, space, "A", "b")
		first := a.acquire(lock.AcquireOptions{})
		waiting := b.begin(context.Background(), patient)
		assert.Equal(t, []string{"POST A", "PUT A"}, n.requests(), "a page without the lock of this machine does not ask the server")
		a.release(first)
		require.NoError(t, <-waiting)
		assert.Equal(t, []string{"POST A", "PUT A", "DELETE A", "POST A", "PUT A"}, n.requests())
		assert.Equal(t, "A", n.held(), "the first tab gave back its own lock, not that of the second")
	})
}

func TestNextTabReplacesDeadTabUnderNewToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		_, err := (&browser{net: n, session: "A"}).Send(context.Background(), remote.Request{Method: "POST", Path: "/api/documents/project/lock"})
		require.NoError(t, err)
		assert.Greater(t, open(t, n, locktest.NewSpace(), "A", "a").acquire(lock.AcquireOptions{IfAvailable: true}).Token, int64(101))
	})
}

func TestInspectingBothMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, space := newInternet(), locktest.NewSpace()
		a, b := open(t, n, locktest.NewSpace(), "A", "a"), open(t, n, space, "B", "b")
		first := a.acquire(lock.AcquireOptions{})
		waiting := b.begin(context.Background(), patient)
		open(t, n, space, "B", "c").begin(context.Background(), patient)
		holders, waiters, err := b.Inspect(context.Background())
		require.NoError(t, err)
		require.Len(t, holders, 1)
		assert.Equal(t, "tab A", holders[0].OwnerID)
		assert.Len(t, waiters, 2)
		a.release(first)
		require.NoError(t, <-waiting)
		holders, waiters, err = b.Inspect(context.Background())
		require.NoError(t, err)
		require.Len(t, holders, 1)
		assert.Equal(t, "b", holders[0].OwnerID)
		assert.Len(t, waiters, 1)
	})
}

func TestStealFromAnotherTab(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, space := newInternet(), locktest.NewSpace()
		a, b := open(t, n, space, "A", "a"), open(t, n, space, "A", "b")
		first := a.acquire(lock.AcquireOptions{})
		second := b.acquire(lock.AcquireOptions{Steal: true})
		assert.Greater(t, second.Token, first.Token)
		sleep(0)
		require.ErrorIs(t, first.Err(), lock.ErrLost)
		sleep(time.Minute)
		assert.NoError(t, second.Err(), "the former holder released nothing of the stealer")
		assert.Equal(t, "A", n.held())
	})
}

func TestShortNetworkFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := open(t, n, locktest.NewSpace(), "A", "a")
		lease := a.acquire(lock.AcquireOptions{})
		a.told()
		sleep(5 * time.Second)
		n.set(true)
		sleep(15 * time.Second)
		n.set(false)
		sleep(time.Minute)
		assert.NoError(t, lease.Err())
		log := a.told()
		assert.Equal(t, []string{"error renew-failed", "waiting"}, log[:2])
		assert.Contains(t, log, "renewed")
	})
}

// A client that was disconnected for longer than the TTL may no longer write.
func TestLongNetworkFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := open(t, n, locktest.NewSpace(), "A", "a")
		lease := a.acquire(lock.AcquireOptions{})
		a.told()
		n.set(true)
		sleep(30*time.Second - 61*time.Millisecond)
		assert.NoError(t, lease.Err())
		sleep(time.Millisecond)
		require.ErrorIs(t, lease.Err(), lock.ErrStale, "a little before the TTL: the server's clock may be faster")
		assert.NotEmpty(t, n.held(), "the server keeps it until then")
		sleep(60 * time.Millisecond)
		assert.Empty(t, n.held())
		log := a.told()
		assert.Equal(t, []string{"error lease-stale", "readonly-entered lease-stale"}, log[len(log)-2:])
	})
}

// A network that loses everything returns nothing, not even an error.
func TestSilentNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := open(t, n, locktest.NewSpace(), "A", "a")
		lease := a.acquire(lock.AcquireOptions{})
		a.told()
		n.silence(true)
		sleep(16 * time.Second)
		assert.Equal(t, []string{"error renew-failed", "waiting"}, a.told())
		n.silence(false)
		sleep(time.Minute)
		assert.NoError(t, lease.Err())
		n.silence(true)
		sleep(30 * time.Second)
		require.ErrorIs(t, lease.Err(), lock.ErrStale)
		sleep(5 * time.Second) // the server could not be reached: the local lock follows
		begun := time.Now()
		_, err := a.Acquire(context.Background(), lock.AcquireOptions{IfAvailable: true})
		require.ErrorIs(t, err, lock.ErrTimeout)
		assert.LessOrEqual(t, time.Since(begun), 11*time.Second)
	})
}

func TestServerEndsLease(t *testing.T) {
	for name, take := range map[string]func(n *internet){
		"expired":         func(n *internet) { n.leases = nil },
		"somebody else's": func(n *internet) { n.leases[0].session = "B"; n.leases[0].expires = time.Now().Add(time.Hour) },
		"another token":   func(n *internet) { n.leases[0].token++ },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newInternet()
				a := open(t, n, locktest.NewSpace(), "A", "a")
				lease := a.acquire(lock.AcquireOptions{})
				n.mu.Lock()
				take(n)
				n.mu.Unlock()
				sleep(10 * time.Second)
				assert.ErrorIs(t, lease.Err(), lock.ErrLost)
			})
		})
	}
}

func TestGivingUpLeavesNothingOnServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a, b := open(t, n, locktest.NewSpace(), "A", "a"), open(t, n, locktest.NewSpace(), "B", "b")
		first := a.acquire(lock.AcquireOptions{})
		ctx, abort := context.WithCancel(context.Background())
		waiting := b.begin(ctx, patient)
		b.browser.onGrant = abort // granted and abandoned at the same moment
		a.release(first)
		require.ErrorIs(t, <-waiting, lock.ErrAborted)
		sleep(time.Second)
		assert.Empty(t, n.held())
	})
}

func TestUnreachableServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		n.set(true)
		a := open(t, n, locktest.NewSpace(), "A", "a")
		for _, opts := range []lock.AcquireOptions{{IfAvailable: true}, {Timeout: lock.NoWait}, {}} {
			_, err := a.Acquire(context.Background(), opts)
			require.ErrorIs(t, err, lock.ErrTimeout)
			assert.ErrorContains(t, err, "no answer of the server")
		}
		a.told()
		waiting := a.begin(context.Background(), patient)
		sleep(20 * time.Second)
		n.set(false)
		require.NoError(t, <-waiting)
		assert.Equal(t, []string{"attempt", "error acquire-timeout", "waiting"}, a.told()[:3])
	})
}

func TestReleaseThatDoesNotReachServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, space := newInternet(), locktest.NewSpace()
		a := open(t, n, space, "A", "a")
		lease := a.acquire(lock.AcquireOptions{})
		n.set(true)
		err := lease.Release(context.Background())
		require.ErrorIs(t, err, lock.ErrReleaseFailed)
		n.set(false)
		open(t, n, space, "A", "b").acquire(lock.AcquireOptions{IfAvailable: true}) // on this machine it is free
	})
}

func TestServerThatRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		n.refuse = remote.Reply{Status: 403, Error: "wrong_origin", Message: "Pages of this origin may not lock."}
		_, err := open(t, n, locktest.NewSpace(), "A", "a").Acquire(context.Background(), lock.AcquireOptions{})
		require.ErrorIs(t, err, lock.ErrUnsupported)
		assert.ErrorContains(t, err, "Pages of this origin may not lock.")
	})
}

func TestTTLLongerThanServerAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		_, err := open(t, n, locktest.NewSpace(), "A", "a").Acquire(context.Background(), lock.AcquireOptions{TTL: time.Minute})
		require.ErrorIs(t, err, lock.ErrInvalidArgument)
		assert.ErrorContains(t, err, "ttlMs (60000) must not be longer than the server keeps a lock (30000)")
		assert.Empty(t, n.held())
	})
}

func TestDocumentIDs(t *testing.T) {
	id := func(project string) string {
		id, err := remote.DocumentID(project)
		require.NoError(t, err)
		return id
	}
	assert.Equal(t, "project", id("project"))
	assert.Equal(t, "a~2Fb~7E.c_d-e", id("a/b~.c_d-e"))
	assert.Len(t, id(strings.Repeat("x", 128)), 128)
	for _, project := range []string{"", strings.Repeat("x", 129), strings.Repeat("é", 22)} {
		_, err := remote.DocumentID(project)
		assert.ErrorIs(t, err, lock.ErrInvalidArgument)
	}
	rapid.Check(t, func(t *rapid.T) {
		x, y := rapid.StringN(1, 10, 20).Draw(t, "x"), rapid.StringN(1, 10, 20).Draw(t, "y")
		a, err := remote.DocumentID(x)
		require.NoError(t, err)
		b, err := remote.DocumentID(y)
		require.NoError(t, err)
		assert.Equal(t, x == y, a == b)
		assert.Regexp(t, `^[A-Za-z0-9._~-]+$`, a)
	})
}
