//go:build js && wasm

package opfs

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/hack-pad/safejs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	before := inTheLine(c)
	go func() {
		if g, err := c.Request(ctx, want("y")); err == nil {
			_ = g.Release(context.Background())
		}
	}()
	for inTheLine(c) == before {
		runtime.Gosched()
	}
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
	require.ErrorIs(t, <-gone, context.Canceled)
	free(t, held)
	assert.Equal(t, "mine", <-order)
	assert.Equal(t, "other", <-order)
	free(t, hold(t, other, "y"))
}
