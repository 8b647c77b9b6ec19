//go:build js && wasm

package opfs

import (
	"testing"

	"github.com/hack-pad/safejs"
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
