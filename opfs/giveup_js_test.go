//go:build js && wasm

package opfs

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hack-pad/safejs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

// A page makes requests one after the other without end, and each of them gives up while its step is decided. A request beside them is granted.
func TestRequestsThatGiveUpDelayNoOther(t *testing.T) {
	c := newClient(t, newRoot())
	free(t, hold(t, c, "before"))
	a := newAnswers(t, c)
	end := inOneTurn(c, a.request("x", want("x")))
	giveUp := temporary(c)
	decided := 0
	c.steps.hook = func(step string) {
		if step == "decided" && decided < 100 {
			decided++
			giveUp()
			giveUp = temporary(c)
		}
	}
	end()
	assert.Equal(t, []string{"x"}, a.next(1))
	assert.Less(t, decided, 100)
	c.steps.hook = nil
	giveUp()
	free(t, a.grants["x"])
	free(t, hold(t, c, "y"))
}

// temporary begins a request, and returns when it is in the line. giveUp ends it.
func temporary(c *FileLocks) (giveUp func()) {
	ctx, end := context.WithCancel(context.Background())
	begin(c, func() {
		if g, err := c.Request(ctx, want("y")); err == nil {
			_ = g.Release(context.Background())
		}
	})
	positions := c.steps.order.positions
	last := positions[len(positions)-1].operations
	left := last[len(last)-1].left
	return func() { end(); <-left }
}

// A caller gives up while the table is being written. A request of the same step keeps its place before the request of another client.
func TestGivingUpKeepsThePlacesOfOthers(t *testing.T) {
	root := newRoot()
	holder, c, other := newClient(t, root), newClient(t, root), newClient(t, root)
	held := hold(t, holder, "x")
	resume := inStepsOnly(c)
	free(t, hold(t, c, "before"))
	tables := must(must(must(safejs.Global().Get("Function")).New("tables", `return { written: false, async swap(...step) {
		const content = await tables.swap(...step);
		if (step[4].length && !content && !this.written) {
			this.written = true;
			await new Promise(done => this.resume = done);
		}
		return content;
	} }`)).Invoke(c.steps.file.tables))
	c.steps.file.tables = tables
	order := make(chan string, 2)
	request := func(label string, c *FileLocks) func() {
		return func() {
			g, err := c.Request(context.Background(), want("x"))
			assert.NoError(t, err)
			order <- label
			free(t, g)
		}
	}
	ctx, giveUp := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	inOneTurn(c, request("mine", c), func() {
		_, err := c.Request(ctx, want("y"))
		gone <- err
	})()
	require.Eventually(t, func() bool { return must(must(tables.Get("written")).Truthy()) }, prompt, time.Millisecond)
	left := c.steps.order.positions[0].operations[1].left
	go request("other", other)()
	inLine(t, holder, 2)
	giveUp()
	<-left
	must(tables.Call("resume"))
	resume()
	require.ErrorIs(t, <-gone, context.Canceled)
	free(t, held)
	assert.Equal(t, "mine", <-order)
	assert.Equal(t, "other", <-order)
	free(t, hold(t, other, "y"))
}

// A step grants a waiter whose lock another client has released, and its first operation gives up before it is answered. The waiter goes on before a
// request that began later.
func TestGivingUpDelaysNoWaiter(t *testing.T) {
	for _, c := range []struct {
		step    string
		attempt int  // which one of the step
		beside  bool // another operation is in the step
	}{{"closed", 1, false}, {"decided", 2, true}, {"closed", 1, true}, {"alive", 2, true}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) { testGivingUpDelaysNoWaiter(t, c.step, c.attempt, c.beside) })
	}
}

func testGivingUpDelaysNoWaiter(t *testing.T, at string, attempt int, beside bool) {
	root := newRoot()
	holder, c, p := newClient(t, root), newClient(t, root), startPeer(t, root, safejs.Null())
	held := hold(t, holder, "x")
	p.tell("request", "z")
	p.expect("granted")
	a := newAnswers(t, c)
	shared := want("x")
	shared.Wants[0].Mode = lock.Shared
	go a.request("waiter", shared)()
	inLine(t, holder, 1)
	ctx, giveUp := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	operations := []func(){func() {
		_, err := c.Request(ctx, want("z"))
		gone <- err
	}}
	if beside {
		operations = append(operations, a.request("beside", want("z")))
	}
	end := inOneTurn(c, operations...)
	left := c.steps.order.positions[0].operations[0].left
	p.kill()
	c.maintenance.poke = make(chan struct{}) // the notification of the release comes later
	free(t, held)
	c.steps.hook = func(step string) {
		if step == at {
			attempt--
		}
		if step == at && attempt == 0 {
			c.steps.hook = nil
			giveUp()
			<-left
			begin(c, a.request("later", shared))
		}
	}
	end()
	var order []string
	for !slices.Contains(order, "later") {
		order = append(order, a.next(1)...)
	}
	assert.Equal(t, "waiter", order[0])
	require.ErrorIs(t, <-gone, context.Canceled)
}

// The only operation of a step gives up just before the step is decided again. A request that has joined is not written by this step: it would lose
// its place when the next step writes it again.
func TestEndedStepDecidesNoOtherOperation(t *testing.T) {
	root := newRoot()
	holder, c := newClient(t, root), newClient(t, root)
	held := hold(t, holder, "x")
	resume := inStepsOnly(c)
	free(t, hold(t, c, "before"))
	tables := must(must(must(safejs.Global().Get("Function")).New("tables", `return { step: 0, swap(...step) {
		return this.step++ ? this.later(...step) : step[3].slice(); // as if another client had changed the file
	}, async later(...step) {
		if (this.step === 3) await new Promise(done => this.resume = done);
		return tables.swap(...step);
	} }`)).Invoke(c.steps.file.tables))
	c.steps.file.tables = tables
	a := newAnswers(t, c)
	ctx, giveUp := context.WithCancel(t.Context())
	end := inOneTurn(c, func() { _, _ = c.Request(ctx, want("y")) })
	left := c.steps.order.positions[0].operations[0].left
	c.steps.hook = func(step string) {
		if step == "decided" {
			c.steps.hook = nil
			begin(c, a.request("joined", want("x")))
			giveUp()
			<-left
		}
	}
	end()
	require.Eventually(t, func() bool { return !must(tables.Get("resume")).IsUndefined() }, prompt, time.Millisecond)
	assert.Empty(t, must(holder.Query(t.Context())).Pending)
	must(tables.Call("resume"))
	resume()
	free(t, held)
	assert.Equal(t, "joined", <-a.given)
}
