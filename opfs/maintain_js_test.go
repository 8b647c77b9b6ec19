//go:build js && wasm

package opfs

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
)

// A client has nothing in the table and cannot read it, because tabs of a newer version use it. It looks now and then: the others need the
// file, and the user needs the processor.
func TestClientLooksSeldomAtTableOfNewerVersion(t *testing.T) {
	c := newClient(t, newRoot())
	text := []byte("text of a later version")
	head := fmt.Appendf(nil, "%s%d number=8 bytes=%d", magic, version+1, len(text))
	put(t, c.steps.file.dir, fmt.Appendf(head, " %s\n%s", checksum(head, text), text))
	_, err := try(c, "x")
	require.ErrorIs(t, err, lock.ErrFallbackConflict)
	require.NoError(t, wait.For(t.Context(), linger+resting))
	looks := 0
	c.steps.hook = func(step string) {
		if step == "alive" {
			looks++
		}
	}
	require.NoError(t, wait.For(t.Context(), 2*time.Second))
	c.steps.hook, c.steps.options.TTL = nil, 0 // the file may be written again
	assert.LessOrEqual(t, looks, 20)
}
