//go:build js && wasm

package opfs

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/hack-pad/safejs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/jsbridge"
	"github.com/holdfast-dev/holdfast/lock"
)

// pauseSteps makes sure that c makes no step until the returned function is called. A client also looks at the table by itself, and has
// the file open while it does.
func pauseSteps(t *testing.T, c *FileLocks) func() {
	t.Helper()
	require.True(t, c.steps.turn.take(t.Context()))
	return c.steps.turn.give
}

// tableIsOpen reports whether somebody has the table of c open, between two steps of c.
func tableIsOpen(t *testing.T, c *FileLocks) bool {
	t.Helper()
	defer pauseSteps(t, c)()
	return fileIsOpen(t, c.steps.file.dir)
}

// fileIsOpen reports whether somebody has the table in dir open.
func fileIsOpen(t *testing.T, dir *Dir) bool {
	t.Helper()
	file, err := dir.file(t.Context(), lockFile, false)
	require.NoError(t, err)
	err = probe(t.Context(), file)
	if err != nil {
		require.True(t, busy(err), "%v", err)
	}
	return err != nil
}

func makeStep(t *testing.T, c *FileLocks) {
	t.Helper()
	require.NoError(t, c.steps.visit(t.Context(), func(s *session) error { s.changed = true; return nil }))
}

// keepingClient returns a client that keeps the table open until another one asks.
func keepingClient(t *testing.T, root string) *FileLocks {
	c := newClient(t, root)
	if !helped() {
		c.steps.file.tables = made("tables.js", "new module.Tables(1e9, 1e9)")
	}
	return c
}

// A client keeps the table open after a step, and closes it after a tenth of a second without a step. It does not keep
// the table if another client is notified.
func TestTableStaysOpen(t *testing.T) {
	c := newClient(t, newRoot())
	kept := false
	for end := time.Now().Add(5 * time.Second); !kept && time.Now().Before(end); {
		makeStep(t, c)
		kept = tableIsOpen(t, c)
	}
	assert.True(t, kept)
	require.Eventually(t, func() bool { return !tableIsOpen(t, c) }, prompt, 10*time.Millisecond, "the file stays open forever")

	require.NoError(t, c.steps.visit(t.Context(), func(s *session) error {
		s.changed, s.notify = true, []string{"somebody"}
		return nil
	}))
	assert.False(t, tableIsOpen(t, c))
}

// A client whose request waits for its own lock keeps the table open, as it makes the next step itself. It does not keep the table while it
// waits for another client.
func TestTableStaysOpenForTheNextHolder(t *testing.T) {
	root := newRoot()
	holder, waiter := keepingClient(t, root), keepingClient(t, root)
	held, granted := hold(t, holder, "x"), make(chan lock.Grant, 1)
	request := func(c *FileLocks, waiters int) {
		go func() { granted <- must(c.Request(context.Background(), want("x"))) }()
		inLine(t, c, waiters)
	}
	request(holder, 1)
	makeStep(t, holder)
	assert.True(t, tableIsOpen(t, holder))

	request(waiter, 2)
	proceed := pauseSteps(t, holder) // it would ask the waiter for the file
	makeStep(t, waiter)
	assert.False(t, tableIsOpen(t, waiter))
	proceed()
	free(t, held)
	free(t, <-granted)
	free(t, <-granted)
}

// A query leaves the table open if its client keeps it, so that the next step need not open it again. A client that only reads does not begin
// to keep it.
func TestQueryLeavesTheTableAsItIs(t *testing.T) {
	root := newRoot()
	c, reader := keepingClient(t, root), keepingClient(t, root)
	inStepsOnly(c)
	makeStep(t, c)
	require.True(t, tableIsOpen(t, c))
	_, err := c.Query(t.Context())
	require.NoError(t, err)
	assert.True(t, tableIsOpen(t, c))
	_, err = reader.Query(t.Context())
	require.NoError(t, err)
	assert.False(t, tableIsOpen(t, c))
}

// A hidden page does not keep the table open, and closes it at once when it becomes hidden.
func TestHiddenPageClosesTable(t *testing.T) {
	c := keepingClient(t, newRoot())
	inStepsOnly(c)
	makeStep(t, c)
	require.True(t, tableIsOpen(t, c))
	must(c.steps.file.tables.Call("keep", false))
	assert.False(t, tableIsOpen(t, c))
	makeStep(t, c)
	assert.False(t, tableIsOpen(t, c))
	must(c.steps.file.tables.Call("keep", true))
	makeStep(t, c)
	assert.True(t, tableIsOpen(t, c))
}

// Others write each time that a hidden page has decided on the content before. The page decides in the end, so that it can
// renew and release its leases.
func TestHiddenPageIsNotOvertakenForEver(t *testing.T) {
	root := newRoot()
	c, other := keepingClient(t, root), keepingClient(t, root)
	for _, hidden := range []*FileLocks{c, other} {
		makeStep(t, hidden)
		must(hidden.steps.file.tables.Call("keep", false))
	}
	decided := 0
	c.steps.hook = func(step string) {
		if step != "decided" {
			return
		}
		if decided++; decided < 10 && !fileIsOpen(t, c.steps.file.dir) {
			makeStep(t, other)
		}
	}
	makeStep(t, c)
	c.steps.hook = nil
	assert.Less(t, decided, 10)
	assert.False(t, tableIsOpen(t, c))
}

// A page decides slowly, because its thread is busy, and another client writes each time that it may. The page decides in
// the end.
func TestSlowPageIsNotOvertakenForEver(t *testing.T) {
	root := newRoot()
	c, other := keepingClient(t, root), keepingClient(t, root)
	makeStep(t, c)
	makeStep(t, other)
	decided := 0
	var writing sync.WaitGroup
	c.steps.hook = func(step string) {
		if step != "decided" {
			return
		}
		if decided++; decided < 10 {
			writing.Go(func() { makeStep(t, other) })
			<-time.After(35 * time.Millisecond) // longer than a client may decide again before others open the file
		}
	}
	makeStep(t, c)
	c.steps.hook = nil
	writing.Wait()
	assert.Less(t, decided, 10)
}

// A client closes the table for each client that asks, also for one in another thread.
func TestClientClosesTableForOthers(t *testing.T) {
	root := newRoot()
	a, b := keepingClient(t, root), keepingClient(t, root)
	var times []time.Duration
	for range 20 {
		makeStep(t, a)
		begun := time.Now()
		makeStep(t, b)
		times = append(times, time.Since(begun))
		a, b = b, a
	}
	t.Log("a step after another client's:", times)

	p := startPeer(t, root, safejs.Null())
	for range 5 {
		makeStep(t, a)
		p.tell("request", "x")
		p.expect("granted")
		makeStep(t, a)
		p.tell("release", "x")
		p.expect("released")
	}
}

// A client that makes one step after the other, without a pause, does not exclude others.
func TestBusyClientClosesTableForOthers(t *testing.T) {
	root := newRoot()
	ctx, stop := context.WithCancel(t.Context())
	busy, done := keepingClient(t, root), make(chan int)
	go func() {
		steps := 0
		for ctx.Err() == nil && busy.steps.visit(ctx, func(s *session) error { s.changed = true; return nil }) == nil {
			steps++
		}
		done <- steps
	}()
	p := startPeer(t, root, safejs.Null())
	begun := time.Now()
	for range 20 {
		p.tell("request", "x")
		p.expect("granted")
		p.tell("release", "x")
		p.expect("released")
	}
	took := time.Since(begun)
	stop()
	t.Logf("20 cycles of one client took %v beside %d steps of the other", took, <-done)
}

// A client that has received a content may decide on it before others are let in, but not for long.
func TestClientThatDecidesAgainIsWaitedFor(t *testing.T) {
	root := newRoot()
	c, other := keepingClient(t, root), newClient(t, root)
	makeStep(t, other)
	same, err := c.steps.file.exchange(t.Context(), true, &session{}) // it does not know the file's content, and does not decide again
	require.NoError(t, err)
	require.False(t, same)
	makeStep(t, other)
}

// The storage of the site is cleared while a client keeps the table: soon the client finds the new file.
func TestClearedTableIsOpenedAgain(t *testing.T) {
	c := keepingClient(t, newRoot())
	inStepsOnly(c)
	makeStep(t, c)
	c.steps.file.tables = made("tables.js", "new module.Tables(1e9, 20)")
	makeStep(t, c)
	<-time.After(30 * time.Millisecond) // a step opens the file again after 20 ms
	opened := counting(t)
	makeStep(t, c)
	assert.Positive(t, opened())
}

// The table was removed while a client keeps it open, because the site's data was cleared. The client never closes it: the thread
// would stand still in Chromium.
func TestRemovedTableIsNotClosed(t *testing.T) {
	c := keepingClient(t, newRoot())
	inStepsOnly(c)
	dir := c.steps.file.dir
	// The browser closes a dropped handle when it collects garbage, so the test keeps all handles.
	replace(t, prototype("FileSystemFileHandle"), "createSyncAccessHandle", `return async function (options) {
		const handle = await before.call(this, options)
		argument.push(handle)
		return handle
	}`, must(must(safejs.Global().Get("Array")).New()))
	c.steps.file.tables = made("tables.js", "new module.Tables(20)")
	asked := must(must(safejs.Global().Get("Object")).New())
	require.NoError(t, asked.Set("n", 0))
	removed := func() { require.NoError(t, asked.Set("removed", true)) } // until the next look
	replace(t, prototype("FileSystemFileHandle"), "getFile", `return async function () {
		if (!argument.removed) return before.call(this)
		argument.removed = false
		argument.n++
		throw new DOMException('planted', 'NotFoundError')
	}`, asked)
	looks := func(n int) bool { return must(must(asked.Get("n")).Int()) >= n }
	removed()
	makeStep(t, c) // the client looks once, 20 ms later
	require.Eventually(t, func() bool { return looks(1) }, prompt, time.Millisecond)
	assert.True(t, fileIsOpen(t, dir))

	cleared := func() {
		next, err := NewDir(newRoot())
		require.NoError(t, err)
		require.True(t, c.steps.turn.take(t.Context()))
		defer c.steps.turn.give()
		dir, c.steps.file.dir, c.steps.file.open = c.steps.file.dir, next, false
	}
	c.steps.file.tables = made("tables.js", "new module.Tables(1e9, 20)")
	cleared()
	makeStep(t, c)
	require.True(t, fileIsOpen(t, c.steps.file.dir))
	<-time.After(30 * time.Millisecond) // after which a step looks
	removed()
	cleared()
	makeStep(t, c)
	assert.True(t, looks(2))
	assert.True(t, fileIsOpen(t, dir))
}

// counting returns a function that reports how often a file was opened since.
func counting(t *testing.T) func() int {
	t.Helper()
	counter := must(must(safejs.Global().Get("Object")).New())
	require.NoError(t, counter.Set("n", 0))
	replace(t, prototype("FileSystemFileHandle"), "createSyncAccessHandle", "return function () { argument.n++; return before.call(this) }", counter)
	return func() int { return must(must(counter.Get("n")).Int()) }
}

// A client whose steps follow each other makes two of them each time that it has the table, although another one waits.
func TestTwoStepsThatFollowEachOther(t *testing.T) {
	const pairs = 20
	root := newRoot()
	names := must(jsbridge.Broadcast(root + "/" + lockFile)) // the channel on which clients name the next one
	heard := must(must(safejs.Global().Get("Array")).New())
	must(must(must(safejs.Global().Get("Function")).New("channel", "heard", "channel.onmessage = ({ data }) => data.next && heard.push(data)")).Invoke(names, heard))
	defer func() { must(names.Call("close")) }()
	var both sync.WaitGroup
	for range 2 {
		c := newClient(t, root)
		c.steps.file.tables = made("tables.js", "new module.Tables(1e9, 1e9, 1e3)")
		both.Go(func() {
			for range 2 * pairs {
				makeStep(t, c)
			}
		})
	}
	both.Wait()
	passes := must(heard.Length())
	t.Log("the table went to the other client", passes, "times")
	assert.LessOrEqual(t, passes, 2*pairs+5)
}
