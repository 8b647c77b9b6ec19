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

// A release fails because an earlier step of the client takes too long. That step was decided while the client had the
// lock. When the step has ended, the lock is free.
func TestFailedReleaseDuringAStepFreesTheLock(t *testing.T) {
	root := newRoot()
	c, other := newClient(t, root), newClient(t, root)
	g, err := c.Request(t.Context(), want("x"))
	require.NoError(t, err)
	decided, goOn := make(chan struct{}), make(chan struct{})
	c.steps.hook = func(step string) {
		if step == "decided" {
			c.steps.hook = nil
			close(decided)
			<-goOn
		}
	}
	slow := make(chan error)
	go func() {
		_, err := c.Request(context.Background(), want("y"))
		slow <- err
	}()
	<-decided
	ctx, giveUp := context.WithTimeout(t.Context(), time.Millisecond)
	defer giveUp()
	require.Error(t, g.Release(ctx))
	close(goOn)
	require.NoError(t, <-slow)

	again, err := within(prompt, other, "x")
	require.NoError(t, err)
	assert.NoError(t, again.Release(t.Context()))
}

// A record cannot be removed, because the client's step before takes too long, or because the table cannot be written. A later step
// removes it.
func TestRecordIsRemovedLater(t *testing.T) {
	for name, fail := range map[string]func(*FileLocks, lock.Record) error{
		"busy": func(c *FileLocks, r lock.Record) error {
			c.steps.turn.take(context.Background())
			defer c.steps.turn.give()
			ctx, giveUp := context.WithTimeout(context.Background(), time.Millisecond)
			defer giveUp()
			return c.Remove(ctx, r)
		},
		"not written": func(c *FileLocks, r lock.Record) error {
			tables := c.steps.file.tables
			c.steps.file.tables = must(must(must(safejs.Global().Get("Function")).New("exception",
				"return { swap() { throw exception } }")).Invoke(exception("AbortError")))
			defer func() { c.steps.file.tables = tables }()
			return c.Remove(context.Background(), r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := newRoot()
			c, other := newClient(t, root), newClient(t, root)
			lease := claimed(t, c, newRecord("x", lock.Exclusive))
			kept := claimed(t, c, newRecord("y", lock.Exclusive))
			require.Error(t, fail(c, lease))
			makeStep(t, c)
			_, ok, err := other.Read(t.Context(), "x")
			require.NoError(t, err)
			assert.False(t, ok)
			require.NoError(t, c.Renew(t.Context(), kept))
		})
	}
}

// Two shared leases of one client claim their records in another order than their locks were granted. The release of one lock fails
// before it is made later. The other lease goes on.
func TestFailedReleaseEndsNoOtherLease(t *testing.T) {
	c := newClient(t, newRoot())
	shared := lock.Request{Wants: []lock.Want{{Name: "x", Mode: lock.Shared}}}
	first := must(c.Request(t.Context(), shared))
	must(c.Request(t.Context(), shared))
	second := claimed(t, c, newRecord("x", lock.Shared))
	claimed(t, c, newRecord("x", lock.Shared))
	c.steps.turn.take(t.Context())
	ctx, giveUp := context.WithTimeout(t.Context(), time.Millisecond)
	defer giveUp()
	require.Error(t, first.Release(ctx))
	c.steps.turn.give()
	require.NoError(t, c.Renew(t.Context(), second))
}

// A lock is released while an earlier request of the same client is decided again, because another client has written. The request does
// not see the release that comes after it.
func TestRequestComesBeforeALaterRelease(t *testing.T) {
	root := newRoot()
	c, other := newClient(t, root), newClient(t, root)
	inStepsOnly(c)
	g := hold(t, c, "x")
	released := make(chan error, 1)
	c.steps.hook = func(step string) {
		if step == "decided" {
			c.steps.hook = nil
			go func() { released <- g.Release(context.Background()) }()
			free(t, hold(t, other, "y"))
		}
	}
	_, err := try(c, "x")
	require.ErrorIs(t, err, lock.ErrDenied)
	require.NoError(t, <-released)
	free(t, hold(t, c, "x"))
}
