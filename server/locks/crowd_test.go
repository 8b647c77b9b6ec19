package locks_test

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// Many holders wait for one lock, and all of them get it. A release wakes only the first waiter, so the number of
// looks grows with the number of releases, not with its square. CROWD= sets the number of waiters.
func TestACrowdIsServed(t *testing.T) {
	crowd := 300
	if n, err := strconv.Atoi(os.Getenv("CROWD")); err == nil {
		crowd = n
	}
	table := open(t, kvtest.Open(t))
	first, err := table.Acquire(t.Context(), want(ann, at("p")))
	require.NoError(t, err)
	var all sync.WaitGroup
	slots := make(chan struct{}, 64) // at most this many arrive at once
	arrived := make(chan struct{}, crowd)
	begun := time.Now()
	for i := range crowd {
		slots <- struct{}{}
		all.Go(func() {
			holder := who(fmt.Sprint(i))
			own, err := table.Acquire(t.Context(), want(holder, at("own", fmt.Sprint(i))))
			assert.NoError(t, err)
			r := want(holder, at("p"))
			r.Wait = 5 * time.Minute
			arrived <- struct{}{}
			<-slots
			l, err := table.Acquire(t.Context(), r)
			if assert.NoError(t, err) {
				assert.NoError(t, table.Release(t.Context(), l.ID, holder.ID))
			}
			assert.NoError(t, table.Release(t.Context(), own.ID, holder.ID))
		})
	}
	for range crowd {
		<-arrived
	}
	require.Eventually(t, func() bool { return table.Waiting() == crowd }, time.Minute, 5*time.Millisecond)
	arrival, given := time.Since(begun), time.Now()
	sent := time.Now()
	bystander, err := table.Acquire(t.Context(), want(bob, at("q")))
	require.NoError(t, err)
	aside := time.Since(sent)
	require.NoError(t, table.Release(t.Context(), bystander.ID, bob.ID))
	looks := table.Looks()
	require.NoError(t, table.Release(t.Context(), first.ID, ann.ID))
	all.Wait()
	backstops := crowd * (1 + int(time.Since(begun)/locks.Backstop))
	assert.Less(t, table.Looks()-looks, 4*crowd+backstops)
	t.Logf("%d arrived in %v; another lock took %v; served in %v, %v each",
		crowd, arrival, aside, time.Since(given), time.Since(given)/time.Duration(crowd))
}
