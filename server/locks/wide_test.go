package locks_test

import (
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// deep returns places with so many components together.
func deep(components int) (paths []locks.Path) {
	for components > 0 {
		var p locks.Path
		for depth := range min(components, 8) {
			p = append(p, fmt.Sprint(len(paths), "-", depth))
		}
		paths, components = append(paths, p), components-len(p)
	}
	return paths
}

// A request that needs more conditions than a transaction can have is refused, whether or not others hold one of its places. Otherwise it
// could wait, and its lease could be too large to end it.
func TestARequestIsTooWideWhetherOrNotItMustWait(t *testing.T) {
	table := open(t, kvtest.Open(t))
	for components, refused := range map[int]bool{64: false, 65: true, 126: true, 127: true, 128: true} {
		paths := deep(components)
		wide := want(bob, paths...)
		wide.Wait = time.Minute
		acquire := func() chan error {
			outcome := make(chan error, 1)
			go func() {
				lease, err := table.Acquire(t.Context(), wide)
				if err == nil {
					err = table.Withdraw(t.Context(), lease)
				}
				outcome <- err
			}()
			return outcome
		}
		free := <-acquire()
		held, err := table.Acquire(t.Context(), want(ann, paths[0]))
		require.NoError(t, err)
		require.Eventually(t, func() bool { return table.ConflictInView(paths[0], func([]locks.Path) bool { return true }) }, 10*time.Second, time.Millisecond)
		waits := acquire()
		if refused {
			assert.ErrorAs(t, <-waits, new(*locks.InvalidError), "%d components", components)
			assert.ErrorAs(t, free, new(*locks.InvalidError), "%d components", components)
		}
		require.NoError(t, table.Release(t.Context(), held.ID, ann.ID))
		if !refused {
			assert.NoError(t, <-waits)
			assert.NoError(t, free)
		}
	}
}

// A place above several paths counts once: the deepest paths may have as many siblings as a request may have paths.
func TestManyDeepSiblings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New()
		table := locks.OpenInMemory(t, m, m.Client(nil))
		r := locks.Request{Holder: bob, TTL: long}
		for i := range 16 {
			p := locks.Path{}
			for len(p) < 15 {
				p = append(p, "x")
			}
			r.Paths = append(r.Paths, append(p, strconv.Itoa(i)))
		}
		_, err := table.Acquire(t.Context(), r)
		require.NoError(t, err)
	})
}
