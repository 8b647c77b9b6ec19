//go:build js && wasm

package opfs

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/hack-pad/safejs"
	"github.com/stretchr/testify/require"
)

// The client that has been there longest is frozen. A client that ends without blocking anybody is removed nevertheless.
func TestDeadClientIsRemovedWhileTheFirstOneIsFrozen(t *testing.T) {
	root := newRoot()
	frozen, c := newClient(t, root), newClient(t, root)
	hold(t, frozen, "frozen")
	c.steps.options.TTL = time.Second
	hold(t, c, "c")
	p := startPeer(t, root, safejs.Null())
	p.tell("request", "p")
	p.expect("granted")
	frozen.steps.turn.take(context.Background())
	defer frozen.steps.turn.give()
	p.kill()
	require.Eventually(t, func() bool {
		there, err := c.steps.glance(t.Context())
		return err == nil && !slices.ContainsFunc(there.queue, func(e *entry) bool { return e.has("p") })
	}, 2*sweeping+time.Second+prompt, 50*time.Millisecond)
}
