package remote_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

// A tab of this machine is suspended with the lock, during a step over the file of the records, which stays open. A tab with a server takes over:
// whether the suspended tab has a lease, or waits for the server.
func TestFrozenTabWithOpenFileIsTakenOver(t *testing.T) {
	for name, recorded := range map[string]bool{"a holder": true, "a waiter of the server": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHousehold(newInternet())
				frozen := h.freeze(t)
				if recorded {
					_, err := h.records.Claim(t.Context(), lock.Record{Resource: "holdfast:project", LeaseID: "of the frozen", AcquiredAt: time.Now(),
						ExpiresAt: time.Now().Add(25 * time.Second), TTL: 25 * time.Second, Mode: lock.Exclusive}, false)
					require.NoError(t, err)
				}
				defer h.records.Open()()
				waiting := h.openOver(t, "B", "b", h.local("b")).begin(t.Context(), patient)
				sleep(25 * time.Second)
				require.Empty(t, waiting, "it may be busy")
				sleep(20 * time.Second)
				require.NotEmpty(t, waiting)
				require.NoError(t, <-waiting)
				<-frozen.Lost()
			})
		})
	}
}
