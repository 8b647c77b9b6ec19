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

// A process stops during a step, with the table open, so nobody can read it. Clients that ask, wait or hold get a clear
// answer in time. When the process is gone, all of them go on.
func TestFailsInTimeWhileTableIsHeldOpen(t *testing.T) {
	root := newRoot()
	holder, _ := newManager(t, root)
	asker, _ := newManager(t, root)
	mine, err := holder.Acquire(t.Context(), lock.AcquireOptions{Mode: lock.Shared, TTL: 3 * time.Second, HeartbeatInterval: 300 * time.Millisecond})
	require.NoError(t, err)
	theirs, err := asker.Acquire(t.Context(), lock.AcquireOptions{Mode: lock.Shared})
	require.NoError(t, err)
	p := startPeer(t, root, safejs.Null())
	p.tell("keep open")
	p.expect("stopped")

	begun := time.Now()
	require.ErrorIs(t, theirs.Release(t.Context()), lock.ErrReleaseFailed)
	assert.Less(t, time.Since(begun), 5*time.Second+prompt)
	<-mine.Done()
	require.ErrorIs(t, mine.Err(), lock.ErrStale)
	assert.Less(t, time.Since(begun), 5*time.Second+prompt)
	for _, opts := range []lock.AcquireOptions{{Timeout: time.Second}, {Timeout: lock.NoWait}, {IfAvailable: true}} {
		begun := time.Now()
		_, err := asker.Acquire(t.Context(), opts)
		require.ErrorIs(t, err, lock.ErrTimeout)
		assert.Less(t, time.Since(begun), 5*time.Second+prompt)
	}

	p.kill()
	begun = time.Now()
	next, err := asker.Acquire(t.Context(), lock.AcquireOptions{Timeout: time.Minute})
	require.NoError(t, err)
	assert.Less(t, time.Since(begun), prompt)
	require.NoError(t, next.Release(t.Context()))
}

// A process stops with the table open. A request that does not want to wait ends nevertheless, and leaves nothing behind.
func TestFailsInTimeIfNotAvailable(t *testing.T) {
	root := newRoot()
	c, p := newClient(t, root), startPeer(t, root, safejs.Null())
	p.tell("keep open")
	p.expect("stopped")
	failed := make(chan error, 1)
	go func() {
		_, err := try(c, "x")
		failed <- err
	}()
	select {
	case err := <-failed:
		require.ErrorIs(t, err, lock.ErrTimeout)
	case <-time.After(2*stepLimit + prompt):
		require.Fail(t, "it waits forever")
	}
	p.kill()
	free(t, hold(t, c, "x"))
}

// A process stops with the table open while a client makes a step. The client is closed, and gives up. When the process is gone, the client
// holds nothing more, although its worker lives on.
func TestClosedDuringAStepHoldsNothing(t *testing.T) {
	root := newRoot()
	other, err := NewFileLocks(root, Options{Tables: newTables()})
	require.NoError(t, err)
	_, err = other.Request(t.Context(), want("x"))
	require.NoError(t, err)
	p := startPeer(t, root, safejs.Null())
	p.tell("keep open")
	p.expect("stopped")
	decided, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- other.steps.visit(context.Background(), func(s *session) error {
			signal(decided)
			s.changed = true
			return nil
		})
	}()
	<-decided
	ctx, giveUp := context.WithTimeout(t.Context(), time.Second)
	defer giveUp()
	require.Error(t, other.Close(ctx))
	p.kill()
	c := newClient(t, root)
	g, err := within(prompt, c, "x")
	require.NoError(t, err)
	free(t, g)
	select {
	case err := <-ended:
		require.ErrorIs(t, err, lock.ErrAborted)
	case <-time.After(prompt):
		require.Fail(t, "the step goes on")
	}
}
