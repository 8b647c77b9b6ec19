//go:build js && wasm

package opfs

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/hack-pad/safejs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

// A client that wants a name exclusively waits for a shared holder. Clients that ask for the name shared later do not
// overtake it, however long the holder keeps the name: otherwise they could keep it out forever.
func TestSharedRequestWaitsBehindExclusiveOne(t *testing.T) {
	root := newRoot()
	holder, writer, reader := newClient(t, root), newClient(t, root), newClient(t, root)
	shared := want("x")
	shared.Wants[0].Mode = lock.Shared
	held, err := holder.Request(t.Context(), shared)
	require.NoError(t, err)
	written := make(chan lock.Grant, 1)
	go func() { written <- must(writer.Request(context.Background(), want("x"))) }()
	inLine(t, holder, 1)

	ctx, stop := context.WithTimeout(t.Context(), patience+4*slowest)
	defer stop()
	_, err = reader.Request(ctx, shared)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Empty(t, written)
	free(t, held)
	free(t, <-written)
}

// aheadClock runs ahead on the monotonic clock. It can stop: only by moves it then.
type aheadClock struct {
	by      time.Duration
	stopped lock.Instant
}

func (c *aheadClock) Now() lock.Instant {
	now := c.stopped
	if now == (lock.Instant{}) {
		now = lock.SystemClock{}.Now()
	}
	now.Mono += c.by
	return now
}

// setClock runs behind, or stands still.
type setClock struct {
	back time.Duration
	at   time.Time // unless zero
}

func (c *setClock) Now() lock.Instant {
	now := lock.SystemClock{}.Now()
	if !c.at.IsZero() {
		now.Wall = c.at
	}
	now.Wall = now.Wall.Add(-c.back)
	return now
}

// lined returns a client that waits for x behind the number of waiters that are there already, and what its request returns. The
// client makes a step only in looks, and its clock has stopped.
func lined(t *testing.T, root string, before int) (c *FileLocks, clock *aheadClock, granted chan lock.Grant) {
	t.Helper()
	c, clock, granted = newClient(t, root), &aheadClock{}, make(chan lock.Grant, 1)
	c.steps.options.Clock = clock
	go func() {
		if g, err := c.Request(context.Background(), want("x")); err == nil {
			granted <- g
		}
	}()
	inLine(t, c, before+1)
	c.steps.turn.take(context.Background())
	clock.stopped = clock.Now()
	t.Cleanup(func() {
		if t.Failed() && len(c.steps.turn) > 0 { // otherwise the test has given the turn back, and a look may have it
			c.steps.turn.give()
		}
	})
	return c, clock, granted
}

// looks lets a client of lined look at the table once or more, and reports whether it holds the lock then.
func looks(t *testing.T, c *FileLocks) (holds bool) {
	t.Helper()
	c.steps.turn.give()
	require.NoError(t, c.steps.revisit(t.Context(), nothing))
	c.steps.turn.take(context.Background())
	return slices.ContainsFunc(c.steps.own, func(e *entry) bool { return e.state == granted })
}

// Waiters pass a frozen one in their order, even if the later one looks first.
func TestFrozenWaiterIsPassedInOrder(t *testing.T) {
	root := newRoot()
	held := hold(t, newClient(t, root), "x")
	frozen, _, resumed := lined(t, root, 0)
	first, firstClock, granted := lined(t, root, 1)
	second, secondClock, overtakes := lined(t, root, 2)
	free(t, held)
	looks(t, first)
	looks(t, second)
	secondClock.by = patience + slowest
	require.False(t, looks(t, second))
	firstClock.by = patience + slowest
	require.True(t, looks(t, first))
	for i, c := range []*FileLocks{first, frozen, second} {
		c.steps.turn.give()
		free(t, <-[]chan lock.Grant{granted, resumed, overtakes}[i])
	}
}

// A waiter looks only in the moments between a release and the next grant. The line moves, so the waiter passes nobody.
func TestMovingLineIsNotPassed(t *testing.T) {
	root := newRoot()
	held := hold(t, newClient(t, root), "x")
	first, _, firstGranted := lined(t, root, 0)
	second, _, secondGranted := lined(t, root, 1)
	last, clock, overtakes := lined(t, root, 2)
	free(t, held)
	looks(t, last)
	first.steps.turn.give()
	free(t, <-firstGranted)
	clock.by = 2 * patience
	require.False(t, looks(t, last))
	second.steps.turn.give()
	free(t, <-secondGranted)
	last.steps.turn.give()
	free(t, <-overtakes)
}

// Others change the table for other names all the time. A frozen waiter is passed nevertheless.
func TestFrozenWaiterIsPassedWhileTableChanges(t *testing.T) {
	root := newRoot()
	other := newClient(t, root)
	held := hold(t, other, "x")
	frozen, _, resumed := lined(t, root, 0)
	next, clock, granted := lined(t, root, 1)
	free(t, held)
	makeStep(t, other)
	looks(t, next)
	clock.by = 2 * patience
	makeStep(t, other)
	require.True(t, looks(t, next))
	for i, c := range []*FileLocks{next, frozen} {
		c.steps.turn.give()
		free(t, <-[]chan lock.Grant{granted, resumed}[i])
	}
}

// A page makes several requests for a lock that another one holds. They are granted in their order; one that does not want to wait is denied,
// and one for another name does not wait.
func TestRequestsBehindOneOfTheirOwnPage(t *testing.T) {
	root := newRoot()
	holder, c := newClient(t, root), newClient(t, root)
	held := hold(t, holder, "x")
	shared := want("x")
	shared.Wants[0].Mode = lock.Shared
	var answers []chan lock.Grant
	for i, r := range []lock.Request{want("x"), shared, shared, want("x")} {
		granted := make(chan lock.Grant, 1)
		answers = append(answers, granted)
		go func() { granted <- must(c.Request(context.Background(), r)) }()
		inLine(t, holder, i+1)
	}
	_, err := try(c, "x")
	require.ErrorIs(t, err, lock.ErrDenied)
	free(t, hold(t, c, "y"))
	free(t, held)
	first := <-answers[0]
	makeStep(t, c)
	assert.Empty(t, answers[1])
	free(t, first)
	second, third := <-answers[1], <-answers[2]
	free(t, second)
	makeStep(t, c)
	assert.Empty(t, answers[3])
	free(t, third)
	free(t, <-answers[3])
}

// A request that is denied has nothing to remove, so its answer comes before those of later operations.
func TestDenialDoesNotWaitForLaterOperations(t *testing.T) {
	root := newRoot()
	holder, c := newClient(t, root), newClient(t, root)
	held := must(holder.Request(t.Context(), want("x")))
	later, denied := make(chan bool, 1), make(chan error, 1)
	c.steps.hook = func(step string) {
		if step == "decided" && len(later) == 0 {
			go func() { later <- c.steps.order.take(t.Context()) }()
			runtime.Gosched() // now it waits in line
			c.steps.hook = nil
		}
	}
	go func() {
		r := want("x")
		r.IfAvailable = true
		_, err := c.Request(t.Context(), r)
		denied <- err
	}()
	require.True(t, <-later)
	select {
	case err := <-denied:
		require.ErrorIs(t, err, lock.ErrDenied)
	case <-time.After(prompt):
		t.Error("the denial waits for an operation that began after it")
	}
	c.steps.order.give()
	free(t, held)
}

// A request is given up before its turn comes. It ends at once: it has left nothing to remove.
func TestRequestIsGivenUpInLine(t *testing.T) {
	c := newClient(t, newRoot())
	require.True(t, c.steps.order.take(t.Context())) // an operation that takes long
	begun := time.Now()
	_, err := within(10*time.Millisecond, c, "x")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Less(t, time.Since(begun), stepLimit/2)
	c.steps.order.give()
	free(t, hold(t, c, "x"))
}

// A page makes many requests at once on a slow machine. Its release, and a request that does not wait, come after them. The file
// answers all the time, so neither of them fails.
func TestLongLineOfOperationsIsNoSilence(t *testing.T) {
	c := newClient(t, newRoot())
	held := must(c.Request(t.Context(), want("x")))
	c.steps.hook = func(step string) {
		if step == "decided" {
			time.Sleep(stepLimit / 8)
		}
	}
	grants := make(chan lock.Grant, 10)
	for n := range cap(grants) {
		go func() { grants <- must(c.Request(context.Background(), want("y"+strconv.Itoa(n)))) }()
		runtime.Gosched() // now it waits in line
	}
	released := make(chan error, 1)
	go func() { released <- held.Release(context.Background()) }()
	runtime.Gosched()
	r := want("z")
	r.IfAvailable = true
	g, err := c.Request(t.Context(), r)
	require.NoError(t, <-released)
	require.NoError(t, err)
	c.steps.hook = nil
	free(t, g)
	for range cap(grants) {
		free(t, <-grants)
	}
}

// The thread stands still during a release, as in a page that computes for a long time. The file answers then, so the release succeeds.
func TestThreadThatStandsStillIsNoSilence(t *testing.T) {
	c := newClient(t, newRoot())
	held := must(c.Request(t.Context(), want("x")))
	open := raw(t, c.steps.file.dir) // so the next step waits for an answer
	compute := must(must(safejs.Global().Get("Function")).New("ms", "for (const end = performance.now() + ms; performance.now() < end;);"))
	c.steps.hook = func(step string) {
		if step == "decided" {
			c.steps.hook = nil
			runtime.Gosched() // the limit of the release begins
			must(compute.Invoke((stepLimit + time.Second).Milliseconds()))
			open.close()
		}
	}
	require.NoError(t, held.Release(t.Context()))
	free(t, hold(t, c, "x"))
}
