//go:build js && wasm

package opfs

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/hack-pad/safejs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

// busyClient returns a client that is in the table and begins no operation before done is called.
func busyClient(t *testing.T, root string) (c *FileLocks, done func()) {
	c = newClient(t, root)
	free(t, hold(t, c, "before"))
	c.steps.turn.take(context.Background())
	return c, c.steps.turn.give
}

func hold(t *testing.T, c *FileLocks, name string) lock.Grant {
	t.Helper()
	g, err := c.Request(t.Context(), want(name))
	require.NoError(t, err)
	return g
}

func free(t *testing.T, g lock.Grant) {
	t.Helper()
	require.NoError(t, g.Release(t.Context()))
}

// querying returns what the client's query shows, and fails if the query returns while others are busy.
func querying(t *testing.T, c *FileLocks) <-chan lock.Snapshot {
	t.Helper()
	seen := make(chan lock.Snapshot, 1)
	go func() {
		s, err := c.QuerySettled(t.Context())
		assert.NoError(t, err)
		seen <- s
	}()
	select {
	case <-seen:
		require.Fail(t, "the query did not wait for the operation of another client")
	case <-time.After(20 * time.Millisecond):
	}
	return seen
}

// A query shows operations that a client has begun, although the file does not contain them yet.
func TestQuerySeesPendingOperationsOfOthers(t *testing.T) {
	t.Run("request", func(t *testing.T) {
		root := newRoot()
		a, holder := newClient(t, root), newClient(t, root)
		a.questions.answerWait = time.Minute
		held := hold(t, holder, "x")
		b, done := busyClient(t, root)
		go func() { _, _ = b.Request(t.Context(), want("x")) }()
		seen := querying(t, a)
		done()
		assert.Len(t, (<-seen).Pending, 1)
		free(t, held)
	})
	t.Run("release", func(t *testing.T) {
		root := newRoot()
		a, b, waiter := newClient(t, root), newClient(t, root), newClient(t, root)
		a.questions.answerWait = time.Minute
		held := hold(t, b, "x")
		go func() { _, _ = waiter.Request(t.Context(), want("x")) }()
		inLine(t, a, 1)
		waiter.steps.turn.take(context.Background())
		a.questions.answers[waiter.steps.liveness.alive.id] = math.MaxInt64 // it does not answer, and is not waited for
		b.steps.turn.take(context.Background())
		b.steps.hook = func(step string) {
			if step == "alive" {
				time.Sleep(30 * time.Millisecond) // long enough for others to look too early
			}
		}
		go func() { _ = held.Release(t.Context()) }()
		seen := querying(t, a)
		b.steps.turn.give()
		s := <-seen
		waiter.steps.turn.give()
		assert.Empty(t, s.Pending, "its turn has come, though it does not know it")
		require.Len(t, s.Held, 1)
		assert.Equal(t, waiter.steps.liveness.alive.id, s.Held[0].ClientID)
	})
}

// A query waits once for a client that does not run, as in a frozen tab. It waits for that client again after an
// answer.
func TestQueryDoesNotWaitForFrozenClient(t *testing.T) {
	root := newRoot()
	a := newClient(t, root)
	b, wake := busyClient(t, root)
	a.questions.answerWait = 50 * time.Millisecond
	_, err := a.QuerySettled(t.Context())
	require.NoError(t, err)
	a.questions.answerWait = time.Hour
	_, err = a.QuerySettled(t.Context())
	require.NoError(t, err)

	wake()
	require.Eventually(t, func() bool {
		return a.questions.answers[b.steps.liveness.alive.id] <= a.questions.asked
	}, prompt, time.Millisecond)
	b.steps.turn.take(context.Background())
	seen := querying(t, a)
	b.steps.turn.give()
	<-seen
}

// A query does not wait for a client that has ended without notice.
func TestQueryDoesNotWaitForDeadClient(t *testing.T) {
	root := newRoot()
	a := newClient(t, root)
	a.questions.answerWait = time.Hour
	for range 3 {
		p := startPeer(t, root, safejs.Null())
		p.tell("request", "x")
		p.expect("granted")
		p.tell("release", "x")
		p.expect("released")
		p.kill()
		_, err := a.QuerySettled(t.Context())
		require.NoError(t, err)
	}
}

// Two clients ask, and the later request reaches the table first.
func TestFirstRequestIsGrantedFirst(t *testing.T) {
	root := newRoot()
	a, b, c := newClient(t, root), newClient(t, root), newClient(t, root)
	held := hold(t, a, "x")
	ask := func(c *FileLocks, at int64) <-chan lock.Grant {
		granted := make(chan lock.Grant, 1)
		r := want("x")
		r.Asked = at
		go func() {
			g, err := c.Request(t.Context(), r)
			if assert.NoError(t, err) {
				granted <- g
			}
		}()
		return granted
	}
	second := ask(b, 1763687000000002)
	inLine(t, a, 1)
	first := ask(c, 1763687000000001)
	inLine(t, a, 2)
	free(t, held)
	select {
	case g := <-first:
		free(t, g)
	case <-second:
		require.Fail(t, "the second was granted first")
	}
	free(t, <-second)
}
