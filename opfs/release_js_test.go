//go:build js && wasm

package opfs

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
