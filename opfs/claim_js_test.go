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

// A lease does not wait until the record of a client that is gone is removed.
func TestKilledHolderDelaysNoClaim(t *testing.T) {
	root := newRoot()
	c := newClient(t, root)
	p := startPeer(t, root, safejs.Null())
	p.tell("claim", "x", "30s")
	p.expect("claimed")
	p.kill()
	ended(t, c)
	steps := 0
	c.steps.hook = func(step string) {
		if step == "closed" {
			steps++
		}
	}
	now := time.Now()
	r := lock.Record{Resource: "x", LeaseID: lock.NewID(), AcquiredAt: now, ExpiresAt: now.Add(time.Minute)}
	var err error
	r.Token, err = c.Claim(t.Context(), r, false)
	require.NoError(t, err)
	assert.Equal(t, 1, steps)
	c.steps.hook = nil
	require.Eventually(t, func() bool {
		table, err := c.steps.glance(context.Background())
		return err == nil && len(table.queue) == 2 // this client and its record
	}, prompt, 50*time.Millisecond)
	require.NoError(t, c.Remove(t.Context(), r))
	assertOnly(t, c)
}
