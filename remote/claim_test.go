package remote_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
	"github.com/holdfast-dev/holdfast/remote"
)

// The network may fail between the server's grant and the first heartbeat: there is no lease yet, and the waiting goes
// on.
func TestCutOffBeforeTheFirstHeartbeat(t *testing.T) {
	exact := lock.Backoff{Jitter: lock.NoJitter}
	for name, c := range map[string]struct {
		opts   lock.AcquireOptions
		cut    time.Duration
		silent bool
		is     error
		most   time.Duration // maximum duration
	}{
		"it comes back":           {lock.AcquireOptions{Backoff: exact}, 2 * time.Second, false, nil, 4750 * time.Millisecond},
		"after the server's TTL":  {patient, 40 * time.Second, false, nil, 70 * time.Second},
		"it answers nothing":      {patient, 20 * time.Second, true, nil, 75 * time.Second}, // a request that waits on the server was lost
		"the time limit":          {lock.AcquireOptions{Timeout: 20 * time.Second, Backoff: patient.Backoff}, 20 * time.Second, false, lock.ErrTimeout, 20 * time.Second},
		"the retries":             {lock.AcquireOptions{Backoff: exact}, 4750 * time.Millisecond, false, lock.ErrTimeout, 4750 * time.Millisecond},
		"no waiting wanted":       {lock.AcquireOptions{Timeout: lock.NoWait}, 0, false, lock.ErrTimeout, 0},
		"only if it is available": {lock.AcquireOptions{IfAvailable: true}, 0, false, lock.ErrTimeout, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newInternet()
				a := open(t, n, locktest.NewSpace(), "A", "a")
				failing := &n.down
				if c.silent {
					failing = &n.silent
				}
				set := func(on bool) { n.mu.Lock(); *failing = on; n.mu.Unlock() }
				a.browser.onGrant = func() {
					a.browser.onGrant = nil
					set(true)
					time.AfterFunc(c.cut+time.Nanosecond, func() { set(false) })
				}
				begun := time.Now()
				lease, err := a.Acquire(t.Context(), c.opts)
				assert.GreaterOrEqual(t, time.Since(begun), c.cut)
				assert.LessOrEqual(t, time.Since(begun), c.most)
				if c.is != nil {
					require.ErrorIs(t, err, c.is)
					return
				}
				require.NoError(t, err)
				assert.Equal(t, "A", n.held())
				assert.Greater(t, lease.Token, int64(101), "the token of the first grant is no longer valid")
				log := a.told()
				assert.Equal(t, []string{"attempt", "error acquire-timeout", "waiting", "attempt"}, log[:4])
				assert.Equal(t, []string{"attempt", "acquired", "renew-scheduled"}, log[len(log)-3:])
				sleep(time.Minute)
				assert.NoError(t, lease.Err())
			})
		})
	}
}

// A client that receives its grant after another machine has got the lock waits for that machine.
func TestOvertakenBeforeTheFirstHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a, b := open(t, n, locktest.NewSpace(), "A", "a"), open(t, n, locktest.NewSpace(), "B", "b")
		first := b.acquire(lock.AcquireOptions{})
		waiting := a.begin(t.Context(), patient)
		a.browser.onReply = func(remote.Reply) { a.browser.onReply = nil; time.Sleep(31 * time.Second) }
		b.release(first)
		other := b.acquire(patient)
		a.told()
		sleep(20 * time.Second)
		assert.Equal(t, []string{"attempt", "error acquire-denied", "waiting", "attempt"}, a.told()[:4])
		require.NoError(t, other.Err())
		assert.Empty(t, waiting)
		b.release(other)
		require.NoError(t, <-waiting)
		assert.Equal(t, "A", n.held())
	})
}

// Whenever the network breaks while a client waits on the server, the client asks again soon after the last break.
func TestBreaksBetweenLongWaitsDoNotAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a, b := open(t, n, locktest.NewSpace(), "A", "a"), open(t, n, locktest.NewSpace(), "B", "b")
		first := a.acquire(lock.AcquireOptions{})
		waiting := b.begin(t.Context(), patient)
		for range 12 {
			sleep(20 * time.Second)
			n.cut()
		}
		a.release(first)
		begun := time.Now()
		require.NoError(t, <-waiting)
		assert.LessOrEqual(t, time.Since(begun), 1500*time.Millisecond)
	})
}

// After a request breaks or its time ends, the next one asks for the same place in the queue. Another acquisition has
// another place.
func TestOneAcquisitionHasOneTicket(t *testing.T) {
	for name, opts := range map[string]lock.AcquireOptions{"document": patient, "place": waits(at("x"))} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newInternet()
				a, b := open(t, n, locktest.NewSpace(), "A", "a"), open(t, n, locktest.NewSpace(), "B", "b")
				for range 2 {
					first := a.acquire(lock.AcquireOptions{})
					waiting := b.begin(t.Context(), opts)
					sleep(time.Second)
					n.cut()
					sleep(3 * time.Minute)
					a.release(first)
					require.NoError(t, <-waiting)
					b.release(b.Leases()[0])
				}
				tickets := slices.Compact(slices.Clone(n.tickets))
				assert.Greater(t, len(n.tickets), 8)
				assert.Len(t, tickets, 2)
				assert.NotContains(t, tickets, "")
			})
		})
	}
}

// Of two requests with one ticket the server keeps the later one. If the network has delayed the current one, the
// waiter asks again.
func TestReplacedRequestIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := open(t, n, locktest.NewSpace(), "A", "a")
		n.refuse = remote.Reply{Status: 409, Error: "replaced"}
		waiting := a.begin(t.Context(), patient)
		sleep(time.Second)
		n.mu.Lock()
		n.refuse = remote.Reply{}
		n.mu.Unlock()
		begun := time.Now()
		require.NoError(t, <-waiting)
		// At most two pauses after its first request: up to 1 s, otherwise it would not have asked again by then, and
		// 1.5 s and a half.
		assert.LessOrEqual(t, time.Since(begun), 2250*time.Millisecond)
	})
}

// A request whose answer is lost without a sign, as for a page that was frozen, costs no more than its own time, which
// is short.
func TestLostRequestIsRepeatedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a, b := open(t, n, locktest.NewSpace(), "A", "a"), open(t, n, locktest.NewSpace(), "B", "b")
		first := a.acquire(lock.AcquireOptions{})
		waiting := b.begin(t.Context(), patient)
		sleep(14 * time.Second)
		deafen := func(on bool) { n.mu.Lock(); b.browser.deaf = on; n.mu.Unlock() }
		deafen(true)
		sleep(45 * time.Second)
		deafen(false)
		a.release(first)
		begun := time.Now()
		require.NoError(t, <-waiting)
		assert.LessOrEqual(t, time.Since(begun), 25*time.Second)
	})
}

// After any absence of the server, a waiter asks soon after the server has come back.
func TestServerReturnsAfterLongTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 8 {
			n := newInternet()
			b := open(t, n, locktest.NewSpace(), "B", "b")
			n.set(true)
			waiting := b.begin(t.Context(), patient)
			sleep(5 * time.Minute)
			n.set(false)
			begun := time.Now()
			require.NoError(t, <-waiting)
			assert.LessOrEqual(t, time.Since(begun), 5*time.Second)
		}
	})
}
