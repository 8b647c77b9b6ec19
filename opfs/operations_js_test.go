//go:build js && wasm

package opfs

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/hack-pad/safejs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

// inOneTurn begins operations of a client, in this order, before the client can make a step. end lets it make steps.
func inOneTurn(c *FileLocks, operations ...func()) (end func()) {
	c.steps.turn.take(context.Background())
	for _, o := range operations {
		begin(c, o)
	}
	return c.steps.turn.give
}

// begin begins an operation, and returns when it is in the line of the client.
func begin(c *FileLocks, operation func()) {
	before := operationsInLine(c)
	go operation()
	for operationsInLine(c) == before {
		runtime.Gosched()
	}
}

// operationsInLine returns the number of operations that wait for a step.
func operationsInLine(c *FileLocks) (n int) {
	for _, p := range c.steps.order.positions {
		n += len(p.operations)
	}
	return n
}

// countWrites counts the steps of a client that change the table.
func countWrites(c *FileLocks) (writes func() int) {
	counting := must(must(must(safejs.Global().Get("Function")).New("tables", `return { writes: 0, swap(...step) {
		if (step[4].length) this.writes++;
		return tables.swap(...step);
	} }`)).Invoke(c.steps.file.tables))
	c.steps.file.tables = counting
	return func() int { return must(must(counting.Get("writes")).Int()) }
}

// answers notes in which order the requests and releases of a test are answered.
type answers struct {
	t      *testing.T
	c      *FileLocks
	grants map[string]lock.Grant
	given  chan string
}

func newAnswers(t *testing.T, c *FileLocks) *answers {
	return &answers{t, c, make(map[string]lock.Grant), make(chan string, 1000)}
}

func (a *answers) request(label string, r lock.Request) func() {
	return func() {
		g, err := a.c.Request(context.Background(), r)
		a.grants[label] = g
		if err != nil {
			label += " fails"
		}
		a.given <- label
	}
}

func (a *answers) release(label string, g lock.Grant) func() {
	return func() {
		if g.Release(context.Background()) != nil {
			label += " fails"
		}
		a.given <- label
	}
}

// next returns the next n answers.
func (a *answers) next(n int) (all []string) {
	for range n {
		all = append(all, <-a.given)
	}
	return all
}

func optional(name string) lock.Request {
	r := want(name)
	r.IfAvailable = true
	return r
}

// A page requests many locks in one turn, and releases them in one turn. The table is written once for each turn, and the requests are answered in
// their order.
func TestOperationsOfOneTurnAreOneWrite(t *testing.T) {
	c := newClient(t, newRoot())
	inStepsOnly(c)
	free(t, hold(t, c, "before"))
	writes := countWrites(c)
	a := newAnswers(t, c)
	var labels []string
	var requests []func()
	for n := range 100 {
		labels = append(labels, fmt.Sprint(n))
		requests = append(requests, a.request(labels[n], want("name "+labels[n])))
	}
	inOneTurn(c, requests...)()
	assert.Equal(t, labels, a.next(100))
	assert.Equal(t, 1, writes())

	var releases []func()
	for _, label := range labels {
		releases = append(releases, a.release(label, a.grants[label]))
	}
	inOneTurn(c, releases...)()
	assert.Equal(t, labels, a.next(100))
	assert.Equal(t, 2, writes())
}

// The same for one name: all requests stand in line after one write, and each release grants the next one.
func TestRequestsOfOneNameAreOneWrite(t *testing.T) {
	c := newClient(t, newRoot())
	inStepsOnly(c)
	held := hold(t, c, "x")
	writes := countWrites(c)
	a := newAnswers(t, c)
	var requests []func()
	for n := range 100 {
		requests = append(requests, a.request(fmt.Sprint(n), want("x")))
	}
	inOneTurn(c, requests...)()
	require.NoError(t, c.steps.visit(t.Context(), nothing))
	assert.Equal(t, 1, writes())
	free(t, held)
	for n := range 100 {
		require.Equal(t, fmt.Sprint(n), <-a.given)
		free(t, a.grants[fmt.Sprint(n)])
	}
}

// A step has a limited number of operations, so that other clients do not wait for long.
func TestStepHasLimitedOperations(t *testing.T) {
	c := newClient(t, newRoot())
	inStepsOnly(c)
	free(t, hold(t, c, "before"))
	writes := countWrites(c)
	a := newAnswers(t, c)
	var requests []func()
	for n := range 2*maxOperations + 1 {
		requests = append(requests, a.request("", want(fmt.Sprint("name ", n))))
	}
	inOneTurn(c, requests...)()
	a.next(len(requests))
	assert.Equal(t, 3, writes())
}

// A page requests a lock that it holds, then another one, and releases the first. The second request is granted first, because the
// other one waited for the release. Then come the waiters in their order.
func TestAnswersOfOneTurnKeepTheirOrder(t *testing.T) {
	c := newClient(t, newRoot())
	held := hold(t, c, "x")
	a := newAnswers(t, c)
	shared := want("x")
	shared.Wants[0].Mode = lock.Shared
	inOneTurn(c, a.request("first", shared), a.request("other", want("y")), a.request("second", shared),
		a.release("release", held), a.request("third", shared), a.request("last", want("z")))()
	assert.Equal(t, []string{"other", "first", "second", "release", "third", "last"}, a.next(6))
}

// Waiters that another client's release grants in one step are answered in their order.
func TestWaitersOfOneStepAreAnsweredInOrder(t *testing.T) {
	root := newRoot()
	holder, c := newClient(t, root), newClient(t, root)
	held := hold(t, holder, "x")
	a := newAnswers(t, c)
	shared := want("x")
	shared.Wants[0].Mode = lock.Shared
	var labels []string
	var requests []func()
	for n := range 20 {
		labels = append(labels, fmt.Sprint(n))
		requests = append(requests, a.request(labels[n], shared))
	}
	inOneTurn(c, requests...)()
	inLine(t, holder, len(requests))
	free(t, held)
	assert.Equal(t, labels, a.next(len(labels)))
}

// Another client's release and the requests of a turn are seen in one step. The waiter goes on before a request that began later.
func TestWaiterGoesOnBeforeLaterRequests(t *testing.T) {
	root := newRoot()
	holder, c := newClient(t, root), newClient(t, root)
	held := hold(t, holder, "x")
	a := newAnswers(t, c)
	shared := want("x")
	shared.Wants[0].Mode = lock.Shared
	go a.request("waiter", shared)()
	inLine(t, holder, 1)
	end := inOneTurn(c, a.request("other", want("y")), a.request("later", shared))
	free(t, held)
	end()
	assert.Equal(t, []string{"waiter", "other", "later"}, a.next(3))
}

// A lock is requested, and a steal takes it in the same turn. The first request is granted and lost.
func TestStealAfterARequestOfItsTurn(t *testing.T) {
	c := newClient(t, newRoot())
	free(t, hold(t, c, "before"))
	a := newAnswers(t, c)
	steal := want("x")
	steal.Steal = true
	inOneTurn(c, a.request("request", want("x")), a.request("steal", steal), a.request("other", want("y")))()
	assert.Equal(t, []string{"request", "steal", "other"}, a.next(3))
	assert.True(t, lost(a.grants["request"]))
	assert.False(t, lost(a.grants["steal"]))
	free(t, a.grants["steal"])
}

// Nothing is answered before the write that contains it. The write fails: each operation of the turn fails, the next step makes the
// release, and other clients find none of the requests.
func TestFailedWriteFailsItsWholeTurn(t *testing.T) {
	for name, body := range map[string]string{
		"nothing is written": "return { swap(...step) { if (step[4].length) throw exception; return tables.swap(...step) } }",
		"all is written":     "return { async swap(...step) { const content = await tables.swap(...step); if (step[4].length && !content) throw exception; return content } }",
	} {
		t.Run(name, func(t *testing.T) {
			root := newRoot()
			c, other := newClient(t, root), newClient(t, root)
			held, kept := hold(t, c, "held"), hold(t, c, "kept")
			a := newAnswers(t, c)
			tables := c.steps.file.tables
			c.steps.file.tables = must(must(must(safejs.Global().Get("Function")).New("tables", "exception", body)).Invoke(tables, exception("AbortError")))
			c.steps.hook = func(step string) {
				if step == "decided" {
					c.steps.hook = nil
					assert.Empty(t, a.given)
				}
			}
			inOneTurn(c, a.request("x", want("x")), a.release("release", held), a.request("held", optional("held")), a.request("y", want("y")))()
			assert.ElementsMatch(t, []string{"x fails", "release fails", "held fails", "y fails"}, a.next(4))
			c.steps.file.tables = tables
			for _, name := range []string{"x", "y", "held"} {
				g, err := within(prompt, other, name)
				require.NoError(t, err)
				free(t, g)
			}
			_, err := try(other, "kept")
			require.ErrorIs(t, err, lock.ErrDenied)
			free(t, kept)
		})
	}
}

// A caller gives up while its operation is decided together with others. The others are made, and a lock that it would have got is free.
func TestCallerGivesUpInTheMiddleOfATurn(t *testing.T) {
	c := newClient(t, newRoot())
	held := hold(t, c, "held")
	a := newAnswers(t, c)
	ctx, giveUp := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	end := inOneTurn(c, a.request("x", want("x")), func() {
		_, err := c.Request(ctx, want("y"))
		gone <- err
	}, a.release("release", held))
	left := c.steps.order.positions[0].operations[1].left
	c.steps.hook = func(step string) {
		if step == "decided" {
			c.steps.hook = nil
			giveUp()
			<-left
		}
	}
	end()
	assert.Equal(t, []string{"x", "release"}, a.next(2))
	require.ErrorIs(t, <-gone, context.Canceled)
	free(t, hold(t, c, "y"))
}

// A page asks for more in one turn than the table can hold. It gets what fits, and the locks of others stay.
func TestOneTurnAsksForMoreThanThereIsRoom(t *testing.T) {
	root := newRoot()
	c, other := newClient(t, root), newClient(t, root)
	held, mine := hold(t, other, "x"), hold(t, c, strings.Repeat("n", maxText*3/4))
	a := newAnswers(t, c)
	half := func(n string) lock.Request { return want(strings.Repeat(n, maxText/2)) }
	inOneTurn(c, a.request("too long", half("a")), a.release("release", mine), a.request("fits", half("b")), a.request("fits no more", half("c")))()
	assert.ElementsMatch(t, []string{"too long fails", "release", "fits", "fits no more fails"}, a.next(4))
	free(t, hold(t, other, "y"))
	assert.False(t, lost(held))
	free(t, a.grants["fits"])
}

// The site's data is cleared before a turn. Its operations are made in the new table, and the client keeps the lock that nobody has taken.
func TestTurnAfterClear(t *testing.T) {
	holder := newClient(t, newRoot())
	g, released := hold(t, holder, "x"), hold(t, holder, "released")
	next, resume := cleared(t, holder)
	resume()
	a := newAnswers(t, holder)
	inOneTurn(holder, a.request("waits", want("x")), a.release("release", released), a.request("y", want("y")))()
	assert.Equal(t, []string{"release", "y"}, a.next(2))
	_, err := try(next, "x")
	require.ErrorIs(t, err, lock.ErrDenied)
	free(t, hold(t, next, "released"))
	assert.False(t, lost(g))
	free(t, g)
	assert.Equal(t, "waits", <-a.given)
}

// A page makes thousands of requests. A client that asks for another lock meanwhile does not wait for all of them.
func TestLongTurnDelaysNoOtherClient(t *testing.T) {
	root := newRoot()
	c, p := keepingClient(t, root), startPeer(t, root, safejs.Null())
	free(t, hold(t, c, "before"))
	p.tell("request", "x")
	p.expect("granted")
	a := newAnswers(t, c)
	var requests []func()
	for n := range 8 * maxOperations {
		requests = append(requests, a.request("", want(fmt.Sprint("name ", n%maxOperations))))
	}
	end := inOneTurn(c, requests...)
	left, goOn := make(chan int, 1), make(chan struct{})
	c.steps.hook = func(step string) {
		if step == "closed" {
			c.steps.hook = nil
			left <- len(requests) - len(c.steps.order.positions[0].deciding)
			<-goOn
		}
	}
	end()
	assert.Positive(t, <-left, "the first step makes all operations")
	p.tell("request", "y")
	p.expect("granted")
	close(goOn)
}

// The helper of a page has ended, and a lock is released that the table does not have. There is nothing to do.
func TestNothingIsReleasedWithoutHelper(t *testing.T) {
	end := withMortalHelper(t)
	c := newClient(t, newRoot())
	held := hold(t, c, "x")
	end()
	require.NoError(t, c.steps.remove(t.Context(), "unknown"))
	free(t, held)
}
