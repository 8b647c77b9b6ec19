//go:build js && wasm

package opfs

import (
	"context"
	"testing"
	"time"

	"github.com/hack-pad/safejs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

// failing returns an object that makes the steps of tables, and answers those that write with an exception, the first n times. The
// writes are made nevertheless. later, unless it is undefined, is a promise for which the step after those waits.
func failing(tables safejs.Value, exception string, n int, later safejs.Value) safejs.Value {
	return must(must(must(safejs.Global().Get("Function")).New("tables", "name", "n", "later", `return {async swap(...step) {
		if (n === 0) await later;
		const content = await tables.swap(...step);
		if (n === 0 || content || !step[4].length) return content;
		n--;
		throw new DOMException('planted', name);
	}}`)).Invoke(tables, exception, n, later))
}

// A write fails with an exception that is none of the file system. The request fails, and the program goes on.
func TestUnknownException(t *testing.T) {
	c := newClient(t, newRoot())
	tables := c.steps.file.tables
	c.steps.file.tables = failing(tables, "AbortError", 1, safejs.Undefined())
	_, err := c.Request(t.Context(), want("x"))
	require.ErrorIs(t, err, lock.ErrUnsupported)
	free(t, hold(t, c, "x"))
}

// A waiter gets no answer to the step that grants its lock, and the lock is stolen before its next step. The table was not replaced:
// the waiter waits for the stealer.
func TestGrantIsStolenBeforeTheWaiterKnows(t *testing.T) {
	root := newRoot()
	holder, waiter := newClient(t, root), newClient(t, root)
	warnings := 0
	for _, c := range []*FileLocks{holder, waiter} {
		c.steps.options.Warn = func(string) { warnings++ }
	}
	held := hold(t, holder, "x")
	granted := make(chan lock.Grant, 1)
	go func() { granted <- must(waiter.Request(context.Background(), want("x"))) }()
	inLine(t, holder, 1)
	next := must(must(must(safejs.Global().Get("Function")).New("return new Promise((done) => { self.goOn = done; })")).Invoke())
	waiter.steps.file.tables = failing(waiter.steps.file.tables, "AbortError", 1, next)
	free(t, held)
	require.Eventually(t, func() bool {
		state, err := holder.Query(t.Context())
		return err == nil && len(state.Held) == 1
	}, prompt, time.Millisecond)
	steal := want("x")
	steal.Steal = true
	stolen, err := holder.Request(t.Context(), steal)
	require.NoError(t, err)
	must(safejs.Global().Call("goOn"))
	inLine(t, holder, 1)
	assert.False(t, lost(stolen))
	free(t, stolen)
	free(t, <-granted)
	assert.Zero(t, warnings)
}
