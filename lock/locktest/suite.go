package locktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

// patience bounds each test of the suite. The longest test takes some seconds in a browser, and many times that on a
// busy machine.
var patience = time.Minute

// RunLocker runs the suite that every Locker must pass. open returns a function that makes clients of a space in which
// nothing that the suite locks is held; all clients of one test share the space.
func RunLocker(t *testing.T, open func(t *testing.T) func() lock.Locker) {
	runLocker(t, open, append(suite(), stealing()...))
}

// RunLockerWithoutSteal is [RunLocker] for a Locker that cannot steal.
func RunLockerWithoutSteal(t *testing.T, open func(t *testing.T) func() lock.Locker) {
	runLocker(t, open, suite())
}

type suiteTest struct {
	name string
	run  func(*harness)
}

func stealing() []suiteTest {
	return []suiteTest{
		{"a steal gets the lock, and the former holder learns of it", testSteal},
		{"release after a steal harms nobody", testReleaseAfterSteal},
	}
}

func suite() []suiteTest {
	return []suiteTest{
		{"an exclusive lock keeps others out", testExclusive},
		{"shared locks admit each other", testShared},
		{"a shared request does not pass an exclusive one", testNoPassing},
		{"waiters are granted in order", testOrder},
		{"ifAvailable answers instead of waiting", testIfAvailable},
		{"an ended context leaves the queue", testAbort},
		{"a context that ended before asks for nothing", testAbortedBefore},
		{"a grant that races an abort never leaks", testAbortRace},
		{"several names are all or nothing", testSeveral},
		{"names are independent of each other", testNames},
		{"release twice is release once", testReleaseTwice},
		{"a query lists the holders and the waiters", testQuery},
	}
}

func runLocker(t *testing.T, open func(t *testing.T) func() lock.Locker, tests []suiteTest) {
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), patience)
			defer stop()
			c.run(&harness{T: t, ctx: ctx, client: open(t), name: "suite " + lock.NewID()})
		})
	}
}

type harness struct {
	*testing.T
	ctx    context.Context
	client func() lock.Locker
	name   string // unique to the test
}

func (h *harness) want(mode lock.Mode) lock.Request {
	return lock.Request{Wants: []lock.Want{{Name: h.name, Mode: mode}}}
}

func (h *harness) hold(l lock.Locker, r lock.Request) lock.Grant {
	h.Helper()
	g, err := l.Request(h.ctx, r)
	require.NoError(h, err)
	return g
}

func (h *harness) free(g lock.Grant) {
	h.Helper()
	require.NoError(h, g.Release(context.Background()))
}

// mustBeFree fails if a client still holds or waits.
func (h *harness) mustBeFree() {
	h.Helper()
	h.eventually(func(s lock.Snapshot) bool {
		return count(s.Held, h.name) == 0 && count(s.Pending, h.name) == 0
	})
}

type waiter struct {
	granted chan lock.Grant
	failed  chan error
}

// wait asks in the background and returns once the request is in the queue.
func (h *harness) wait(ctx context.Context, l lock.Locker, r lock.Request) waiter {
	h.Helper()
	before := 0
	h.eventually(func(s lock.Snapshot) bool { before = count(s.Pending, h.name); return true })
	w := waiter{make(chan lock.Grant, 1), make(chan error, 1)}
	go func() {
		if g, err := l.Request(ctx, r); err != nil {
			w.failed <- err
		} else {
			w.granted <- g
		}
	}()
	h.eventually(func(s lock.Snapshot) bool { return count(s.Pending, h.name) > before })
	return w
}

func (h *harness) granted(w waiter) lock.Grant {
	h.Helper()
	select {
	case g := <-w.granted:
		return g
	case err := <-w.failed:
		require.NoError(h, err)
	case <-h.ctx.Done():
		require.Fail(h, "a waiter was forgotten")
	}
	return nil
}

func (h *harness) waiting(w waiter) {
	h.Helper()
	select {
	case <-w.granted:
		require.Fail(h, "granted although it conflicts")
	case err := <-w.failed:
		require.NoError(h, err)
	default:
	}
}

// eventually repeats the query until the state is as wanted. The queue has no events, and its state may show late.
func (h *harness) eventually(ok func(lock.Snapshot) bool) {
	h.Helper()
	observer := h.client()
	for {
		s, err := observer.Query(h.ctx)
		require.NoError(h, err)
		if ok(s) {
			return
		}
		select {
		case <-time.After(time.Millisecond):
		case <-h.ctx.Done():
			require.Failf(h, "the state never came", "last: %+v", s)
		}
	}
}

func count(infos []lock.Info, name string) (n int) {
	for _, i := range infos {
		if i.Name == name {
			n++
		}
	}
	return n
}

func testExclusive(h *harness) {
	a := h.hold(h.client(), h.want(lock.Exclusive))
	second := h.wait(h.ctx, h.client(), h.want(lock.Exclusive))
	third := h.wait(h.ctx, h.client(), h.want(lock.Shared))
	h.waiting(second)
	h.free(a)
	b := h.granted(second)
	h.waiting(third)
	h.free(b)
	h.free(h.granted(third))
	h.mustBeFree()
}

func testShared(h *harness) {
	a := h.hold(h.client(), h.want(lock.Shared))
	b := h.hold(h.client(), h.want(lock.Shared))
	writer := h.wait(h.ctx, h.client(), h.want(lock.Exclusive))
	h.free(a)
	h.waiting(writer)
	h.free(b)
	h.free(h.granted(writer))
}

func testNoPassing(h *harness) {
	reader := h.hold(h.client(), h.want(lock.Shared))
	writer := h.wait(h.ctx, h.client(), h.want(lock.Exclusive))
	late := h.wait(h.ctx, h.client(), h.want(lock.Shared))
	h.waiting(late)
	h.free(reader)
	h.free(h.granted(writer))
	h.free(h.granted(late))
}

func testOrder(h *harness) {
	first := h.hold(h.client(), h.want(lock.Exclusive))
	var queue []waiter
	for range 8 {
		queue = append(queue, h.wait(h.ctx, h.client(), h.want(lock.Exclusive)))
	}
	holder := first
	for i := range queue {
		h.free(holder)
		holder = h.granted(queue[i])
		for _, later := range queue[i+1:] {
			h.waiting(later)
		}
	}
	h.free(holder)
	h.mustBeFree()
}

func testIfAvailable(h *harness) {
	r := h.want(lock.Exclusive)
	r.IfAvailable = true
	a := h.hold(h.client(), r)
	_, err := h.client().Request(h.ctx, r)
	assert.ErrorIs(h, err, lock.ErrDenied)
	h.free(a)
	h.free(h.hold(h.client(), r))
	h.mustBeFree()
}

func testSteal(h *harness) {
	victim := h.hold(h.client(), h.want(lock.Exclusive))
	queued := h.wait(h.ctx, h.client(), h.want(lock.Exclusive))
	r := h.want(lock.Exclusive)
	r.Steal = true
	stolen := h.hold(h.client(), r)
	select {
	case <-victim.Lost():
	case <-h.ctx.Done():
		require.Fail(h, "the victim got no loss")
	}
	h.waiting(queued)
	select {
	case <-stolen.Lost():
		require.Fail(h, "the steal was lost")
	default:
	}
	h.free(stolen)
	h.free(victim)
	h.free(h.granted(queued))
}

func testReleaseAfterSteal(h *harness) {
	victim := h.hold(h.client(), h.want(lock.Exclusive))
	r := h.want(lock.Exclusive)
	r.Steal = true
	stolen := h.hold(h.client(), r)
	h.free(victim)
	queued := h.wait(h.ctx, h.client(), h.want(lock.Exclusive))
	h.waiting(queued)
	h.free(stolen)
	h.free(h.granted(queued))
}

func testAbort(h *harness) {
	a := h.hold(h.client(), h.want(lock.Exclusive))
	why := errors.New("changed my mind")
	ctx, stop := context.WithCancelCause(h.ctx)
	leaver := h.wait(ctx, h.client(), h.want(lock.Exclusive))
	stayer := h.wait(h.ctx, h.client(), h.want(lock.Exclusive))
	stop(why)
	select {
	case err := <-leaver.failed:
		assert.ErrorIs(h, err, why)
	case <-h.ctx.Done():
		require.Fail(h, "the request did not end with its context")
	}
	h.free(a)
	h.free(h.granted(stayer))
	h.mustBeFree()
}

func testAbortedBefore(h *harness) {
	ctx, stop := context.WithCancel(h.ctx)
	stop()
	_, err := h.client().Request(ctx, h.want(lock.Exclusive))
	assert.ErrorIs(h, err, context.Canceled)
	h.mustBeFree()
}

func testAbortRace(h *harness) {
	for range 50 {
		a := h.hold(h.client(), h.want(lock.Exclusive))
		ctx, stop := context.WithCancel(h.ctx)
		w := h.wait(ctx, h.client(), h.want(lock.Exclusive))
		go stop()
		h.free(a)
		select {
		case g := <-w.granted:
			h.free(g)
		case err := <-w.failed:
			require.ErrorIs(h, err, context.Canceled)
		case <-h.ctx.Done():
			require.Fail(h, "neither granted nor ended")
		}
		h.mustBeFree()
	}
}

func testSeveral(h *harness) {
	client := h.client()
	other := lock.Want{Name: h.name + " other", Mode: lock.Exclusive}
	blocker := h.hold(h.client(), h.want(lock.Exclusive))
	r := lock.Request{Wants: []lock.Want{other, {Name: h.name, Mode: lock.Exclusive}}, IfAvailable: true}
	_, err := client.Request(h.ctx, r)
	assert.ErrorIs(h, err, lock.ErrDenied)
	h.eventually(func(s lock.Snapshot) bool { return count(s.Held, other.Name) == 0 })
	h.free(blocker)

	both := h.hold(client, lock.Request{Wants: r.Wants})
	h.eventually(func(s lock.Snapshot) bool {
		return count(s.Held, other.Name) == 1 && count(s.Held, h.name) == 1
	})
	h.free(both)
	h.mustBeFree()
}

func testNames(h *harness) {
	a := h.hold(h.client(), h.want(lock.Exclusive))
	b := h.hold(h.client(), lock.Request{Wants: []lock.Want{{Name: h.name + " ünïcode \U0001F512 / .. ", Mode: lock.Exclusive}}})
	h.free(a)
	h.free(b)
}

func testReleaseTwice(h *harness) {
	a := h.hold(h.client(), h.want(lock.Exclusive))
	h.free(a)
	b := h.hold(h.client(), h.want(lock.Exclusive))
	h.free(a)
	w := h.wait(h.ctx, h.client(), h.want(lock.Exclusive))
	h.waiting(w)
	h.free(b)
	h.free(h.granted(w))
}

func testQuery(h *harness) {
	a := h.hold(h.client(), h.want(lock.Shared))
	w := h.wait(h.ctx, h.client(), h.want(lock.Exclusive))
	h.eventually(func(s lock.Snapshot) bool {
		return assert.ObjectsAreEqual(modes(s.Held, h.name), []lock.Mode{lock.Shared}) &&
			assert.ObjectsAreEqual(modes(s.Pending, h.name), []lock.Mode{lock.Exclusive})
	})
	h.free(a)
	h.free(h.granted(w))
}

func modes(infos []lock.Info, name string) (modes []lock.Mode) {
	for _, i := range infos {
		if i.Name == name {
			modes = append(modes, i.Mode)
		}
	}
	return modes
}
