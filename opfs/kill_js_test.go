//go:build js && wasm

package opfs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/hack-pad/safejs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

// operationsOfALease are the commands for a peer, in order, each with its answer.
var operationsOfALease = []struct {
	words  []string
	answer string
}{{[]string{"request", "x"}, "granted"}, {[]string{"claim", "x", "30s"}, "claimed"}, {[]string{"renew", "x", "30s"}, "renewed"}, {[]string{"release", "x"}, "released"}}

// before makes a peer do everything that precedes an operation.
func (p *peer) before(operation int) {
	p.t.Helper()
	for _, o := range operationsOfALease[:operation] {
		p.tell(o.words...)
		p.expect(o.answer)
	}
}

// A worker ends between any two steps of acquire, claim, renew and release. Another worker gets the lock within a
// second, the token rises, and nothing is left behind.
func TestKilledBetweenAnyTwoSteps(t *testing.T) {
	root := newRoot()
	c := newClient(t, root)
	heir := heirOf(t, c)
	for i, o := range operationsOfALease {
		for _, step := range []string{"alive", "decided", "written", "closed"} {
			t.Run(o.words[0]+" "+step, func(t *testing.T) {
				p := startPeer(t, root, safejs.Null())
				p.before(i)
				p.tell("stop at", step, "1")
				p.tell(o.words...)
				p.expect("stopped")
				p.kill()
				heir(t)
			})
		}
	}
}

// A worker ends before any call to the browser's file storage that an operation makes, or that follows when it closes
// the table.
func TestKilledBeforeAnyFileCall(t *testing.T) {
	root := newRoot()
	c := newClient(t, root)
	heir := heirOf(t, c)
	for i, o := range operationsOfALease {
		for n, over := 0, false; !over; n++ {
			t.Run(fmt.Sprint(o.words[0], n), func(t *testing.T) {
				p := startPeer(t, root, safejs.Null())
				p.before(i)
				p.tell("hang", fmt.Sprint(n))
				p.tell(o.words...)
				answer := p.expectOr("at ", o.answer)
				over = strings.HasPrefix(answer, o.answer)
				t.Log("killed", answer)
				p.kill()
				ended(t, c)
				heir(t)
			})
		}
	}
}

// ended returns when the browser has closed the files of all other clients. The browser ends a worker that is inside a
// call after two seconds.
func ended(t *testing.T, c *FileLocks) {
	t.Helper()
	require.Eventually(t, func() bool {
		all, err := c.steps.liveness.alive.others(context.Background())
		for _, client := range all {
			file, missing := c.steps.liveness.alive.dir.file(context.Background(), client, false)
			if missing == nil && probe(context.Background(), file) != nil {
				return false
			}
		}
		return err == nil
	}, prompt, 20*time.Millisecond)
}

// heirOf returns a check that the client gets the lock soon after another one was killed.
func heirOf(t *testing.T, c *FileLocks) func(*testing.T) {
	t.Helper()
	var highest int64
	return func(t *testing.T) {
		t.Helper()
		begun := time.Now()
		g, err := within(prompt, c, "x")
		require.NoError(t, err)
		assert.Less(t, time.Since(begun), prompt)
		now := time.Now()
		token, err := c.Claim(t.Context(), lock.Record{Resource: "x", LeaseID: lock.NewID(), AcquiredAt: now, ExpiresAt: now.Add(time.Minute)}, false)
		require.NoError(t, err)
		assert.Greater(t, token, highest)
		highest = token
		require.NoError(t, g.Release(t.Context()))
		assertOnly(t, c)
	}
}

// assertOnly checks that no other client is in the table or has a file.
func assertOnly(t *testing.T, c *FileLocks) {
	t.Helper()
	require.Eventually(t, func() bool {
		others, err := c.steps.liveness.alive.others(context.Background())
		table, err2 := c.steps.glance(context.Background())
		return err == nil && err2 == nil && len(others) == 0 && len(table.queue) <= 1
	}, prompt, 50*time.Millisecond, "something of a client that is gone is left")
}

// inLine returns when that many clients wait.
func inLine(t *testing.T, c *FileLocks, waiters int) {
	t.Helper()
	require.Eventually(t, func() bool {
		state, err := c.Query(context.Background())
		return err == nil && len(state.Pending) == waiters
	}, prompt, 5*time.Millisecond)
}

// A waiter behind a dead waiter is granted its turn.
func TestKilledWaiter(t *testing.T) {
	root := newRoot()
	c := newClient(t, root)
	g, err := c.Request(t.Context(), want("x"))
	require.NoError(t, err)
	a, b := startPeer(t, root, safejs.Null()), startPeer(t, root, safejs.Null())
	a.tell("request", "x")
	inLine(t, c, 1)
	b.tell("request", "x")
	inLine(t, c, 2)
	a.kill()
	begun := time.Now()
	require.NoError(t, g.Release(t.Context()))
	b.expect("granted")
	assert.Less(t, time.Since(begun), prompt)
}

// Workers acquire and release a lock; some of them end at any moment, and others begin.
func TestChurnWithKills(t *testing.T) {
	const workers, rounds = 4, 25
	root, memory := newRoot(), shared()
	var peers [workers]*peer
	var numbers [workers]int
	ended := make(map[int]bool)
	var after []int // numbers of killed holders that later holders found
	begin := func(i, number int) {
		peers[i], numbers[i] = startPeer(t, root, memory), number
		peers[i].tell("churn", "x", "100000", fmt.Sprint(number))
	}
	for i := range peers {
		begin(i, i+1)
	}
	for round := range rounds {
		time.Sleep(time.Duration(50+rand.IntN(150)) * time.Millisecond)
		i := rand.IntN(workers)
		peers[i].kill()
		ended[numbers[i]] = true
		after = append(after, peers[i].drain()...)
		begin(i, workers+round+1)
	}
	for _, p := range peers {
		after = append(after, p.drain()...)
		for range 3 {
			p.expect("waited") // each of them still runs
		}
	}
	for _, number := range after {
		assert.True(t, ended[number], "there were two holders")
	}
	t.Log(len(after), "were killed while they held")
	for _, p := range peers {
		p.kill()
	}
	c := newClient(t, root)
	g, err := within(prompt, c, "x")
	require.NoError(t, err)
	require.NoError(t, g.Release(t.Context()))
}

// drain reads the peer's messages, which must report no failure, and returns the numbers of the holders that it found.
func (p *peer) drain() (after []int) {
	for {
		select {
		case text := <-p.heard:
			require.NotContains(p.t, text, "failed")
			if rest, ok := strings.CutPrefix(text, "after "); ok {
				after = append(after, number(rest))
			}
		default:
			return after
		}
	}
}

// A living holder with an expired lease is replaced and notified; a holder that renews is not replaced.
func TestExpiredLeaseIsTakenOver(t *testing.T) {
	const ttl = 2 * time.Second
	root := newRoot()
	holder, other := newClient(t, root), newClient(t, root)
	clock := &setClock{}
	other.steps.options.Clock = clock
	hold := func() (lock.Grant, lock.Record) {
		g, err := holder.Request(t.Context(), want("x"))
		require.NoError(t, err)
		now := time.Now()
		r := lock.Record{Resource: "x", LeaseID: lock.NewID(), OwnerName: "somebody", AcquiredAt: now, ExpiresAt: now.Add(ttl)}
		r.Token, err = holder.Claim(t.Context(), r, false)
		require.NoError(t, err)
		return g, r
	}
	t.Run("renewed", func(t *testing.T) {
		g, r := hold()
		for range 4 {
			clock.at = r.ExpiresAt.Add(-ttl / 2)
			_, err := within(800*time.Millisecond, other, "x")
			require.ErrorIs(t, err, context.DeadlineExceeded)
			r.ExpiresAt = time.Now().Add(ttl)
			require.NoError(t, holder.Renew(t.Context(), r))
		}
		require.NoError(t, g.Release(t.Context()))
		require.NoError(t, holder.Remove(t.Context(), r))
		clock.at = time.Time{}
	})
	t.Run("not renewed", func(t *testing.T) {
		g, r := hold()
		taken, err := within(prompt, other, "x")
		require.NoError(t, err)
		assert.False(t, time.Now().Before(r.ExpiresAt))
		require.Eventually(t, func() bool { return lost(g) }, prompt, time.Millisecond)
		require.ErrorIs(t, holder.Renew(t.Context(), r), lock.ErrLost)
		require.NoError(t, g.Release(t.Context()))
		require.NoError(t, holder.Remove(t.Context(), r))
		assert.False(t, lost(taken))
		require.NoError(t, taken.Release(t.Context()))
	})
	t.Run("clock set back", func(t *testing.T) {
		g, _ := hold()
		clock.back = time.Hour
		begun := time.Now()
		taken, err := within(prompt, other, "x")
		require.NoError(t, err)
		assert.GreaterOrEqual(t, time.Since(begun), ttl)
		require.Eventually(t, func() bool { return lost(g) }, prompt, time.Millisecond)
		require.NoError(t, taken.Release(t.Context()))
	})
}

// A frozen client at the head of the queue does not block the others forever.
func TestFrozenWaiterIsPassed(t *testing.T) {
	root := newRoot()
	holder, frozen, other := newClient(t, root), newClient(t, root), newClient(t, root)
	g, err := holder.Request(t.Context(), want("x"))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	woken := make(chan error, 1)
	go func() {
		_, err := frozen.Request(ctx, want("x"))
		woken <- err
	}()
	require.Eventually(t, func() bool {
		frozen.steps.turn.take(context.Background())
		defer frozen.steps.turn.give()
		return len(frozen.steps.own) == 2
	}, prompt, time.Millisecond)
	frozen.steps.turn.take(context.Background())
	require.NoError(t, g.Release(t.Context()))
	begun := time.Now()
	g, err = within(prompt, other, "x")
	frozen.steps.turn.give()
	require.NoError(t, err)
	assert.Greater(t, time.Since(begun), patience)
	select {
	case err := <-woken:
		require.Fail(t, "two holders", "%v", err)
	case <-time.After(2 * slowest): // it has looked within this time
	}
	require.NoError(t, g.Release(t.Context()))
	require.NoError(t, <-woken)
}

func TestRecordsBesideAnotherMechanism(t *testing.T) {
	root := newRoot()
	a, b := newClient(t, root), newClient(t, root)
	record := func(id string) lock.Record {
		now := time.Now().Truncate(time.Millisecond)
		return lock.Record{Resource: "holdfast:" + root, LeaseID: id, OwnerID: "o " + id, OwnerName: "n", AcquiredAt: now, ExpiresAt: now.Add(time.Minute)}
	}
	var err error
	first, second := record("first"), record("second")
	first.Token, err = a.Claim(t.Context(), first, false)
	require.NoError(t, err)
	leases, err := b.Leases(t.Context())
	require.NoError(t, err)
	require.Len(t, leases, 1)
	assert.True(t, leases[0].ExpiresAt.Equal(first.ExpiresAt))
	leases[0].ExpiresAt, leases[0].AcquiredAt = first.ExpiresAt, first.AcquiredAt
	assert.Equal(t, first, leases[0])

	second.Token, err = b.Claim(t.Context(), second, true)
	require.NoError(t, err)
	assert.Greater(t, second.Token, first.Token)
	assert.ErrorIs(t, a.Renew(t.Context(), first), lock.ErrLost)
	require.NoError(t, a.Remove(t.Context(), first))
	require.NoError(t, b.Renew(t.Context(), second))
	require.NoError(t, a.Remove(t.Context(), second), "not its own: nothing happens")
	require.NoError(t, b.Renew(t.Context(), second))

	third := record("third")
	third.Token, err = a.Claim(t.Context(), third, false)
	require.NoError(t, err)
	again, err := b.Claim(t.Context(), second, false) // its acquisition tries again
	require.NoError(t, err)
	assert.Greater(t, again, third.Token)
	require.NoError(t, a.Remove(t.Context(), third))
	require.NoError(t, b.Remove(t.Context(), second))
	assert.ErrorIs(t, b.Renew(t.Context(), second), lock.ErrLost)
	leases, err = a.Leases(t.Context())
	require.NoError(t, err)
	assert.Empty(t, leases)
}

// Shared leases of one client keep their records, in whatever order they are released.
func TestSharedLeasesOfOneClient(t *testing.T) {
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		c := newClient(t, newRoot())
		var grants []lock.Grant
		var records []lock.Record
		r := want("x")
		r.Wants[0].Mode = lock.Shared
		for range 2 {
			g, err := c.Request(t.Context(), r)
			require.NoError(t, err)
			grants = append(grants, g)
		}
		now := time.Now()
		for i := range 2 { // claimed in the opposite order
			rec := lock.Record{Resource: "x", LeaseID: fmt.Sprint(1 - i), AcquiredAt: now, ExpiresAt: now.Add(time.Minute)}
			_, err := c.Claim(t.Context(), rec, false)
			require.NoError(t, err)
			records = append([]lock.Record{rec}, records...)
		}
		for n, i := range order {
			require.NoError(t, grants[i].Release(t.Context()))
			require.NoError(t, c.Remove(t.Context(), records[i]))
			if n == 0 {
				require.NoError(t, c.Renew(t.Context(), records[order[1]]))
				assert.False(t, lost(grants[order[1]]))
			}
		}
		assertOnly(t, c)
	}
}

// No trace of a client is left some seconds after its last use.
func TestClientRests(t *testing.T) {
	c := newClient(t, newRoot())
	g, err := c.Request(t.Context(), want("x"))
	require.NoError(t, err)
	require.NoError(t, g.Release(t.Context()))
	require.Eventually(t, func() bool {
		names, err := c.steps.liveness.alive.dir.names(context.Background())
		return err == nil && len(names) == 0
	}, prompt, 50*time.Millisecond)
	c.maintenance.work.Wait()
	table, err := c.steps.glance(t.Context())
	require.NoError(t, err)
	assert.Empty(t, table.queue)
	g, err = c.Request(t.Context(), want("x"))
	require.NoError(t, err)
	require.NoError(t, g.Release(t.Context()))
}
