//go:build js && wasm

package opfs

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

// A client asks for more than the file can hold. It is refused, and the others keep and get their locks.
func TestFileHasNoRoom(t *testing.T) {
	long := strings.Repeat("n", maxImage)
	for name, ask := range map[string]func(*FileLocks) error{
		"a name": func(c *FileLocks) error {
			_, err := c.Request(context.Background(), want(long))
			return err
		},
		"several names": func(c *FileLocks) error {
			var r lock.Request
			for i := range maxImage / lock.MaxName {
				r.Wants = append(r.Wants, lock.Want{Name: strings.Repeat(string(rune('a'+i%26)), lock.MaxName), Mode: lock.Shared})
			}
			_, err := c.Request(context.Background(), r)
			return err
		},
		"a record": func(c *FileLocks) error {
			now := time.Now()
			_, err := c.Claim(context.Background(), lock.Record{Resource: "x", LeaseID: "l", OwnerName: long, AcquiredAt: now, ExpiresAt: now.Add(time.Minute)}, false)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := newRoot()
			holder, greedy, other := newClient(t, root), newClient(t, root), newClient(t, root)
			held := hold(t, holder, "x")
			require.ErrorIs(t, ask(greedy), lock.ErrUnsupported)
			free(t, hold(t, other, "y"))
			assert.False(t, lost(held))
			free(t, held)
		})
	}
}
