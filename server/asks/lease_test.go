package asks

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// The holder releases its lock, or the asker gets it by another request, just before the question is stored. No question is needed, so the lease
// that would keep it ends. Otherwise the server would renew the lease until it stops.
func TestALeaseWithoutAQuestionEnds(t *testing.T) {
	for name, next := range map[string]string{"the lock is free": "", "the asker has the lock": "bob"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared, leases := memory.New(), 0
				holders := tableOver(t, shared.Client(nil))
				request := locks.Request{Paths: []locks.Path{locks.Document("r")}, Holder: locks.Holder{ID: "ann"}, TTL: time.Hour}
				held, err := holders.Acquire(t.Context(), request)
				require.NoError(t, err)
				request.Holder.ID, request.Again = "bob", true
				store := shared.Client(func(_ context.Context, name string) (_, _ error) {
					switch name {
					case "grant":
						leases++
						assert.NoError(t, holders.Release(t.Context(), held.ID, "ann"))
						if next != "" {
							_, err := holders.Acquire(t.Context(), request)
							assert.NoError(t, err)
						}
					case "revoke":
						leases--
					}
					return nil, nil
				})
				defer func() { assert.NoError(t, store.Close()) }()
				lease, err := New(store, tableOver(t, shared.Client(nil)), nil).Ask(t.Context(), request, grace)
				require.NoError(t, err)
				assert.Equal(t, "bob", lease.Holder.ID)
				assert.Zero(t, leases)
			})
		})
	}
}
