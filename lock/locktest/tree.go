package locktest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

// RunTree runs the tests of places, slots and nested leases over a Locker. open is that of [RunLocker].
func RunTree(t *testing.T, open func(t *testing.T) func() lock.Locker) {
	for _, c := range []struct {
		name string
		run  func(*treeHarness)
	}{
		{"scenarios", testScenarios},
		{"unordered acquisitions of two tabs deadlock, and one of them gets the error", testUnordered},
		{"ordered acquisitions of two tabs do not", testOrdered},
		{"every pair of places", testMatrix},
		{"several places are all or nothing", testAllOrNothing},
		{"slots admit so many and go to the first in line", testSlots},
		{"slots keep out who wants the whole", testSlotsAndWhole},
		{"a cycle through slots", testSlotCycle},
		{"a nested lease uses what encloses it", testNested},
		{"stealing a place", testStealPlace},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), patience)
			defer stop()
			g := &treeHarness{harness: &harness{T: t, ctx: ctx, client: open(t), name: "tree " + lock.NewID()}, network: NewNetwork()}
			c.run(g)
			g.clear()
		})
	}
}

// treeHarness is a project with a tree, and the owners that lock places of it.
type treeHarness struct {
	*harness
	network *Network
	owners  []*lock.Manager
}

func (g *treeHarness) owner() *lock.Manager {
	m, err := lock.NewManager(lock.Config{Channel: g.network.Join(),
		Backends: []lock.Backend{{Strategy: lock.WebLock, Resource: g.name, Locker: g.client()}}})
	require.NoError(g, err)
	g.owners = append(g.owners, m)
	return m
}

// clear fails if anything is still locked.
func (g *treeHarness) clear() {
	for _, m := range g.owners {
		require.NoError(g, m.Close(g.ctx))
	}
	g.eventually(func(s lock.Snapshot) bool {
		ours := func(i lock.Info) bool { return strings.HasPrefix(i.Name, g.name) }
		return !slices.ContainsFunc(append(s.Held, s.Pending...), ours)
	})
}

func (g *treeHarness) lease(ctx context.Context, m *lock.Manager, o lock.AcquireOptions) lock.Lease {
	g.Helper()
	l, err := m.Acquire(ctx, o)
	require.NoError(g, err)
	return l
}

func (g *treeHarness) release(l lock.Lease) {
	g.Helper()
	require.NoError(g, l.Release(g.ctx))
}

// pending is an acquisition in progress.
type pending struct {
	lease chan lock.Lease
	err   chan error
}

// queued acquires in the background and returns when the acquisition waits or has ended.
func (g *treeHarness) queued(ctx context.Context, m *lock.Manager, o lock.AcquireOptions) pending {
	g.Helper()
	p := pending{make(chan lock.Lease, 1), make(chan error, 1)}
	waits := make(chan struct{}, 10)
	stop := m.Subscribe(func(e lock.Event) {
		if e.Type == lock.EventWaiting || e.Type == lock.EventAcquired || e.Type == lock.EventReadonlyEntered {
			waits <- struct{}{}
		}
	})
	defer stop()
	o.Backoff = lock.Backoff{MaxRetries: lock.Unlimited, InitialDelay: time.Minute, MaxDelay: time.Minute}
	go func() {
		if l, err := m.Acquire(ctx, o); err != nil {
			p.err <- err
		} else {
			p.lease <- l
		}
	}()
	select {
	case <-waits:
	case <-g.ctx.Done():
		require.Fail(g, "neither granted nor waiting")
	}
	return p
}

func (g *treeHarness) got(p pending) lock.Lease {
	g.Helper()
	select {
	case l := <-p.lease:
		return l
	case err := <-p.err:
		require.NoError(g, err)
	case <-g.ctx.Done():
		require.Fail(g, "a waiter was forgotten")
	}
	return lock.Lease{}
}

func (g *treeHarness) stillWaits(p pending) {
	g.Helper()
	select {
	case <-p.lease:
		require.Fail(g, "granted although it conflicts")
	case err := <-p.err:
		require.NoError(g, err)
	default:
	}
}

func at(path ...string) lock.AcquireOptions { return lock.AcquireOptions{Path: path} }

// testScenarios are scenarios of two places: the first is held, the second is asked for.
func testScenarios(g *treeHarness) {
	account := lock.User("u1").Account("a1")
	for _, c := range []struct {
		name          string
		first, second []string
		waits         bool
	}{
		{"resource blocks same resource", account.Resource("r1"), account.Resource("r1"), true},
		{"resource allows different resource same account", account.Resource("r1"), account.Resource("r2"), false},
		{"account blocks resource under same account", account, account.Resource("r1"), true},
		{"resource blocks the account it is of", account.Resource("r1"), account, true},
		{"user blocks account under same user", lock.User("u1"), account, true},
		{"user blocks resource under same user", lock.User("u1"), account.Resource("r1"), true},
		{"user allows different user", lock.User("u1"), lock.User("u2"), false},
		{"user allows account of different user", lock.User("u1"), lock.User("u2").Account("a1"), false},
		{"user allows resource of different user", lock.User("u1"), lock.User("u2").Account("a1").Resource("r1"), false},
		{"the project blocks every place", nil, account.Resource("r1"), true},
		{"every place blocks the project", account.Resource("r1"), nil, true},
	} {
		g.Log(c.name)
		a, b := g.owner(), g.owner()
		first := g.lease(g.ctx, a, at(c.first...))
		if !c.waits {
			g.release(g.lease(g.ctx, b, lock.AcquireOptions{Path: c.second, Timeout: lock.NoWait}))
			g.release(first)
			continue
		}
		second := g.queued(g.ctx, b, at(c.second...))
		g.stillWaits(second)
		g.release(first)
		g.release(g.got(second))
	}
}

func testUnordered(g *treeHarness) {
	a, b := g.owner(), g.owner()
	account := lock.User("u1").Account("a1")
	a1 := g.lease(g.ctx, a, at(account.Resource("r1")...))
	b2 := g.lease(g.ctx, b, at(account.Resource("r2")...))
	a2 := g.queued(lock.Within(g.ctx, a1), a, at(account.Resource("r2")...))
	b1 := g.queued(lock.Within(g.ctx, b2), b, at(account.Resource("r1")...))
	// The youngest gets deadlock; within one millisecond, either may be the youngest.
	victim, other, left, kept := b2, a2, b1, a1
	select {
	case err := <-b1.err:
		require.ErrorIs(g, err, lock.ErrDeadlock)
	case err := <-a2.err:
		require.ErrorIs(g, err, lock.ErrDeadlock)
		victim, other, left, kept = a1, b1, a2, b2
	case <-g.ctx.Done():
		require.Fail(g, "no acquisition got the error of the deadlock")
	}
	g.stillWaits(other)
	g.release(victim)
	g.release(g.got(other))
	g.release(kept)
	g.stillWaits(left)
}

func testOrdered(g *treeHarness) {
	account := lock.User("u1").Account("a1")
	done := make(chan error, 2)
	for _, ids := range [][]string{{"r1", "r2"}, {"r2", "r1"}} {
		m := g.owner()
		go func() {
			var err error
			for range 20 {
				var l lock.Lease
				if l, err = m.AcquireResources(g.ctx, account, ids, lock.AcquireOptions{}); err != nil {
					break
				}
				if err = l.Release(g.ctx); err != nil {
					break
				}
			}
			done <- err
		}()
	}
	for range 2 {
		require.NoError(g, <-done)
	}
}

// Places returns all places of 2 users, 2 accounts and 2 resources each.
func Places() (all [][]string) {
	for _, u := range []string{"u1", "u2"} {
		all = append(all, []string{u})
		for _, a := range []string{"a1", "a2"} {
			all = append(all, []string{u, a}, []string{u, a, "r1"}, []string{u, a, "r2"})
		}
	}
	return all
}

// testMatrix asks for every place while another one is held. The oracle does not know places: it compares the names,
// and an exclusive one on either side conflicts.
func testMatrix(g *treeHarness) {
	keys := func(path []string) map[string]bool {
		exclusive := make(map[string]bool)
		for i := range path {
			exclusive[strings.Join(path[:i+1], "/")] = i == len(path)-1
		}
		return exclusive
	}
	a, b := g.owner(), g.owner()
	pairs, blocked := 0, 0
	for _, first := range Places() {
		held := g.lease(g.ctx, a, at(first...))
		for _, second := range Places() {
			want := false
			theirs := keys(second)
			for key, exclusive := range keys(first) {
				if also, ok := theirs[key]; ok && (exclusive || also) {
					want = true
				}
			}
			pairs++
			l, err := b.Acquire(g.ctx, lock.AcquireOptions{Path: second, IfAvailable: true})
			if want {
				blocked++
				assert.ErrorIs(g, err, lock.ErrDenied, "%v, then %v", first, second)
			} else if assert.NoError(g, err, "%v, then %v", first, second) {
				g.release(l)
			}
		}
		g.release(held)
	}
	assert.Equal(g, 196, pairs)
	assert.Equal(g, 54, blocked)
}

func testAllOrNothing(g *treeHarness) {
	a, b, c := g.owner(), g.owner(), g.owner()
	held := g.lease(g.ctx, a, at("u1", "a1", "r2"))
	both := lock.AcquireOptions{Paths: [][]string{{"u1", "a1", "r2"}, {"u1", "a1", "r1"}}}
	try := both
	try.IfAvailable = true
	_, err := b.Acquire(g.ctx, try)
	require.ErrorIs(g, err, lock.ErrDenied)
	g.release(g.lease(g.ctx, c, lock.AcquireOptions{Path: []string{"u1", "a1", "r1"}, Timeout: lock.NoWait}))

	ctx, stop := context.WithCancel(g.ctx)
	waiting := g.queued(ctx, b, both) // has r1 by now, or gets it later
	stop()
	require.ErrorIs(g, <-waiting.err, lock.ErrAborted)
	g.release(g.lease(g.ctx, c, at("u1", "a1", "r1")))
	g.release(held)
	l := g.lease(g.ctx, b, both)
	assert.Equal(g, both.Paths, l.Paths)
	g.release(l)
}

func testSlots(g *treeHarness) {
	o := lock.AcquireOptions{Path: []string{"pool"}, Slots: 3}
	var held []lock.Lease
	for i := range 3 {
		l := g.lease(g.ctx, g.owner(), o)
		assert.Equal(g, i, l.Slot)
		held = append(held, l)
	}
	try := o
	try.IfAvailable = true
	_, err := g.owner().Acquire(g.ctx, try)
	require.ErrorIs(g, err, lock.ErrDenied)

	var line []pending
	for i := range 4 {
		line = append(line, g.queued(g.ctx, g.owner(), o))
		g.eventually(func(s lock.Snapshot) bool { // it waits in line, behind the earlier ones
			return count(slices.Concat(s.Held, s.Pending), g.name+"//pool//line") == i+1
		})
	}
	for i := range line {
		next := held[(i+1)%3]
		g.release(next)
		l := g.got(line[i])
		assert.Equal(g, next.Slot, l.Slot)
		held[(i+1)%3] = l
		for _, later := range line[i+1:] {
			g.stillWaits(later)
		}
	}
	for _, l := range held {
		g.release(l)
	}
	g.release(g.lease(g.ctx, g.owner(), try))
}

func testSlotsAndWhole(g *treeHarness) {
	for _, path := range [][]string{nil, {"pool"}} {
		a, b, c := g.owner(), g.owner(), g.owner()
		one := g.lease(g.ctx, a, lock.AcquireOptions{Path: path, Slots: 2})
		whole := g.queued(g.ctx, b, at(path...))
		g.release(one)
		l := g.got(whole)
		slot := g.queued(g.ctx, c, lock.AcquireOptions{Path: path, Slots: 2})
		g.stillWaits(slot)
		g.release(l)
		g.release(g.got(slot))
	}
}

func testNested(g *treeHarness) {
	a, b := g.owner(), g.owner()
	account := lock.User("u1").Account("a1")
	outer := g.lease(g.ctx, a, at(account...))
	within := lock.Within(g.ctx, outer)
	inner := g.lease(within, a, at(account.Resource("r1")...))
	assert.Equal(g, outer.ID, inner.Within)
	deeper := lock.Within(g.ctx, inner)
	shared := lock.AcquireOptions{Path: account, Mode: lock.Shared}
	g.release(g.lease(deeper, a, shared))

	for name, path := range map[string][]string{"same again": account, "upgrade": lock.User("u1"), "project": nil} {
		_, err := a.Acquire(deeper, at(path...))
		assert.ErrorIs(g, err, lock.ErrReentrant, name)
	}
	_, err := b.Acquire(g.ctx, lock.AcquireOptions{Path: account.Resource("r2"), IfAvailable: true})
	require.ErrorIs(g, err, lock.ErrDenied)
	g.release(outer)
	<-inner.Done()
	require.ErrorIs(g, inner.Err(), lock.ErrLost)
	_, err = a.Acquire(within, at("u2"))
	require.ErrorIs(g, err, lock.ErrInvalidArgument)
	g.release(g.lease(g.ctx, b, at(account...)))
}

func testStealPlace(g *treeHarness) {
	a, b := g.owner(), g.owner()
	below := g.lease(g.ctx, a, at("u1", "a1"))
	beside := g.lease(g.ctx, a, at("u2"))
	stealer := g.lease(g.ctx, b, lock.AcquireOptions{Path: []string{"u1"}, Steal: true})
	<-below.Done()
	require.ErrorIs(g, below.Err(), lock.ErrLost)
	require.NoError(g, beside.Err())

	// A place is stolen from the holder of the whole.
	second := g.lease(g.ctx, a, lock.AcquireOptions{Path: []string{"u1", "a2"}, Steal: true})
	<-stealer.Done()
	require.ErrorIs(g, stealer.Err(), lock.ErrLost)
	g.release(second)
	g.release(beside)
}
