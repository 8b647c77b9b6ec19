//go:build js && wasm

package opfs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hack-pad/safejs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A worker ends between any two steps of a turn. Nothing was answered before the write, and everything was written that was answered. Another
// worker gets all locks.
func TestKilledDuringATurn(t *testing.T) {
	root := newRoot()
	c := newClient(t, root)
	heir := heirOf(t, c)
	for _, step := range []string{"alive", "decided", "written", "closed"} {
		t.Run(step, func(t *testing.T) {
			p := startPeer(t, root, safejs.Null())
			p.before(1)
			p.tell("stop at", step, "1")
			p.tell("turn", "a", "x", "b")
			assert.Equal(t, "stopped "+step, p.expectOr("stopped", "granted", "released"))
			p.kill()
			for _, name := range []string{"a", "b"} {
				g, err := within(prompt, c, name)
				require.NoError(t, err)
				free(t, g)
			}
			heir(t)
		})
	}
}

// A worker ends before any call to the browser's file storage that a turn makes, or that follows when it closes the table.
func TestKilledBeforeAnyFileCallOfATurn(t *testing.T) {
	root := newRoot()
	c := newClient(t, root)
	heir := heirOf(t, c)
	for n, over := 0, false; !over; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			p := startPeer(t, root, safejs.Null())
			p.before(1)
			p.tell("hang", fmt.Sprint(n))
			p.tell("turn", "a", "x", "b")
			answer := p.expectOr("at ", "granted", "released")
			over = !strings.HasPrefix(answer, "at ")
			t.Log("killed", answer)
			if over {
				assert.Equal(t, "granted a", answer)
				p.expect("released x")
				p.expect("granted b")
			}
			p.kill()
			ended(t, c)
			heir(t)
		})
	}
}
