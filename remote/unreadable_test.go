package remote_test

import (
	"context"
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

// withoutFiles are the records of a browser that has no file storage.
type withoutFiles struct{ lock.Records }

func (withoutFiles) Read(context.Context, string) (lock.Record, bool, error) {
	return lock.Record{}, false, lock.ErrUnsupported
}

func (withoutFiles) Claim(context.Context, lock.Record, bool) (int64, error) {
	return 0, lock.ErrUnsupported
}

func (withoutFiles) Remove(context.Context, lock.Record) error { return nil }

// The browser has no file storage. A tab is frozen while it waits for the server, and another tab takes over.
func TestFrozenWaiterOfServerWithoutFilesIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHousehold(newInternet())
		frozen := h.freeze(t)
		local := h.local("b")
		local.Records = lock.WithFallback(withoutFiles{}, &lock.WallTokens{Clock: lock.SystemClock{}}, nil)
		waiting := h.openOver(t, "B", "b", local).begin(t.Context(), patient)
		sleep(25 * time.Second)
		require.Empty(t, waiting, "it may be busy")
		sleep(20 * time.Second)
		require.NotEmpty(t, waiting)
		require.NoError(t, <-waiting)
		<-frozen.Lost()
	})
}
