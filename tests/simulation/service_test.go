package simulation

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/server/kv"
)

// A lease may run out while its heartbeat waits for the store. That is no steal, so the checker has to know already.
// A heartbeat that the store delivers late extends its lease late, so the checker looks for leftovers after it.
func TestAServiceIsUnhealthyWhileItsStoreStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{w: newWorld(1), dice: newWorld(1).dice("service"), stall: 8 * time.Second}
		link := s.link(nil)
		for i := 0; ; i++ {
			began, over := time.Now(), make(chan struct{})
			time.Sleep(time.Millisecond)
			go func() {
				defer close(over)
				_, _ = link(t.Context(), "txn")
			}()
			synctest.Wait()
			during := s.illSince(began)
			var delivered time.Time
			go func() { s.stalled.Wait(); delivered = time.Now() }()
			<-over
			synctest.Wait()
			if long := time.Since(began); long > 2*time.Second {
				assert.True(t, during, "request %d takes %s, and no progress was reported", i, long)
				assert.True(t, s.illSince(began.Add(long/2)), "nor afterwards")
				assert.Equal(t, time.Now(), delivered, "the checker waits for the delivery")
				return
			}
		}
	})
}

// Two leases of different holders have the same token, and a program has one of them. The checker misses nothing.
func TestAbandonedLeaseMayShareATokenWithAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		c := newChecker(w)
		c.service = newService(w, 1, nil)
		defer c.service.close()
		result, err := c.service.look.Commit(t.Context(), kv.Txn{Then: []kv.Op{
			kv.Put("locks/claim/a/!x", []byte(`{"lease":"a"}`)), kv.Put("locks/claim/b/!x", []byte(`{"lease":"b"}`)), kv.Put("locks/claim/c/!x", []byte(`{"lease":"b"}`))}})
		require.NoError(t, err)
		c.beliefs = []*belief{{lease: lock.Lease{Token: result.Revision}}}
		for range 2 {
			c.lookForAbandonedLeases(nil)
			time.Sleep(abandonedLimit + time.Second)
		}
		assert.Len(t, w.findings, 1)
	})
}
