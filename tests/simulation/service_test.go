package simulation

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// A lease may run out while its heartbeat waits for the store. That is no robbery, so the checker has to know already.
// A heartbeat that the store delivers late extends its lease late, so the checker looks for leftovers after it.
func TestAServiceIsIllWhileItsStoreStalls(t *testing.T) {
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
				assert.True(t, during, "request %d takes %s, and nothing tells so meanwhile", i, long)
				assert.True(t, s.illSince(began.Add(long/2)), "nor afterwards")
				assert.Equal(t, time.Now(), delivered, "the checker waits for the delivery")
				return
			}
		}
	})
}
