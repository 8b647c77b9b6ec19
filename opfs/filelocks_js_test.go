//go:build js && wasm

package opfs

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/jsbridge"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
)

// newRoot returns a folder that nothing else uses.
func newRoot() string { return "test " + lock.NewID() + "/project" }

func newClient(t *testing.T, root string) *FileLocks {
	c, err := NewFileLocks(root, Options{Tables: newTables(), Warn: func(detail string) { t.Log("warning:", detail) }})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		require.NoError(t, c.Close(ctx))
	})
	return c
}

// inStepsOnly makes a new client look at the table only when the test makes it do so, until resume is called. Otherwise it also looks after a
// second, and leaves the table if it has nothing there: on a slow machine that may come between any two lines of a test.
func inStepsOnly(c *FileLocks) (resume func()) {
	begun := c.steps.begun
	c.steps.begun = func() {}
	return func() { c.steps.begun = begun; begun() }
}

func TestFileLocks(t *testing.T) { locktest.RunLocker(t, severalClients) }

func TestTreeOverFileLocks(t *testing.T) { locktest.RunTree(t, severalClients) }

func TestRecordsOfFileLocks(t *testing.T) {
	locktest.RunRecords(t, func(t *testing.T) func() lock.Records {
		root := newRoot()
		return func() lock.Records { return newClient(t, root) }
	})
}

// severalClients returns clients that take turns, as many as the tabs that a user has open.
func severalClients(t *testing.T) func() lock.Locker {
	root, clients, next := newRoot(), make([]*FileLocks, 6), 0
	for i := range clients {
		clients[i] = newClient(t, root)
	}
	return func() lock.Locker {
		next++
		return clients[next%len(clients)]
	}
}

// A closed client leaves no goroutine, callback or file behind, and refuses later calls.
func TestClose(t *testing.T) {
	root := newRoot()
	_, err := newClient(t, root).Query(t.Context()) // the runtime keeps a goroutine for events, once there was one
	require.NoError(t, err)
	goroutines, callbacks := runtime.NumGoroutine(), jsbridge.LiveCallbacks()
	for range 5 {
		a, err := NewFileLocks(root, Options{Tables: newTables()})
		require.NoError(t, err)
		b, err := NewFileLocks(root, Options{Tables: newTables()})
		require.NoError(t, err)
		g, err := a.Request(t.Context(), want("x"))
		require.NoError(t, err)
		failed := make(chan error)
		go func() {
			_, err := b.Request(t.Context(), want("x"))
			failed <- err
		}()
		_, err = within(50*time.Millisecond, a, "x")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, b.Close(t.Context()))
		require.ErrorIs(t, <-failed, lock.ErrAborted)
		require.NoError(t, a.Close(t.Context()))
		require.NoError(t, g.Release(t.Context()))
		_, err = try(a, "x")
		require.ErrorIs(t, err, lock.ErrAborted)
		names, err := a.steps.liveness.alive.dir.names(t.Context())
		require.NoError(t, err)
		assert.Empty(t, names)
	}
	for limit := time.Now().Add(prompt); runtime.NumGoroutine() > goroutines && time.Now().Before(limit); {
		time.Sleep(time.Millisecond)
	}
	assert.LessOrEqual(t, runtime.NumGoroutine(), goroutines)
	assert.Equal(t, callbacks, jsbridge.LiveCallbacks())
}

// Nothing outside the root is made or changed.
func TestNothingOutsideTheRoot(t *testing.T) {
	list := func() []string {
		names, err := (&Dir{}).names(t.Context())
		require.NoError(t, err)
		return names
	}
	before := list()
	root := lock.NewID()
	c := newClient(t, root+"/deep/project")
	g, err := c.Request(t.Context(), want("../../x"))
	require.NoError(t, err)
	require.NoError(t, g.Release(t.Context()))
	assert.ElementsMatch(t, append(before, root), list())
	names, err := c.steps.file.dir.parent.names(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"project"}, names)
	names, err = c.steps.file.dir.names(t.Context())
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{lockFile, aliveFolder}, names)
}

// A holder whose lock was stolen, and that missed the notification, notices when it looks.
func TestLookNoticesSteal(t *testing.T) {
	root := newRoot()
	c, stealer := newClient(t, root), newClient(t, root)
	g, err := c.Request(t.Context(), want("x"))
	require.NoError(t, err)
	require.NoError(t, g.Look(t.Context(), lock.SystemClock{}.Now()))
	assert.False(t, lost(g))

	steal := want("x")
	steal.Steal = true
	c.steps.turn.take(context.Background()) // its maintain loop cannot look
	_, err = stealer.Request(t.Context(), steal)
	require.NoError(t, err)
	assert.False(t, lost(g))
	c.steps.turn.give()
	require.NoError(t, g.Look(t.Context(), lock.SystemClock{}.Now()))
	assert.True(t, lost(g))
}

// A client that steals from known holders takes nothing from another client, which may have become the holder since.
func TestStealTakesNothingFromAnotherHolder(t *testing.T) {
	root := newRoot()
	c, stealer := newClient(t, root), newClient(t, root)
	steal := want("x")
	steal.Steal, steal.From = true, []string{}
	g, err := c.Request(t.Context(), want("x"))
	require.NoError(t, err)
	_, err = stealer.Request(t.Context(), steal)
	require.ErrorIs(t, err, lock.ErrDenied)
	require.NoError(t, g.Look(t.Context(), lock.SystemClock{}.Now()))
	assert.False(t, lost(g))

	now, err := stealer.Query(t.Context())
	require.NoError(t, err)
	require.Len(t, now.Held, 1)
	steal.From = []string{now.Held[0].ClientID}
	_, err = stealer.Request(t.Context(), steal)
	require.NoError(t, err)
	require.NoError(t, g.Look(t.Context(), lock.SystemClock{}.Now()))
	assert.True(t, lost(g))
}
