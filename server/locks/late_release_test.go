package locks

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv/memory"
)

// A release gets no answer and reaches the store seconds later. Meanwhile its holder has asked for the lock again, and got the same lease, or has
// sent a heartbeat. The late release does not end what the holder received after it, whether or not another client waits.
func TestALateReleaseEndsNoLeaseThatWasExtended(t *testing.T) {
	for name, waits := range map[string]bool{"nobody waits": false, "another client waits": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				releaseLate(t, waits, func(table *Table, _ Request, l Lease) error {
					_, err := table.Renew(t.Context(), l.ID, l.Holder.ID)
					return err
				})
			})
		})
	}
	t.Run("the holder asks again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			releaseLate(t, false, func(table *Table, r Request, _ Lease) error {
				_, err := table.Acquire(t.Context(), r)
				return err
			})
		})
	})
}

func releaseLate(t *testing.T, waits bool, extend func(*Table, Request, Lease) error) {
	m := memory.New()
	store, late, arrived := m.Delaying(10 * time.Second)
	table := openOver(t, store)
	r := Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "ann"}, TTL: 30 * time.Second, Again: true}
	lease, err := table.Acquire(t.Context(), r)
	require.NoError(t, err)
	passedOn := make(chan error, 1)
	if waits {
		go func() {
			_, err := table.Acquire(t.Context(), Request{Paths: r.Paths, Holder: Holder{ID: "bob"}, TTL: time.Minute, Wait: time.Minute})
			passedOn <- err
		}()
	}
	time.Sleep(time.Second)
	late.Store(true)
	require.Error(t, table.Release(t.Context(), lease.ID, "ann"))
	time.Sleep(time.Second)
	require.NoError(t, extend(table, r, lease))
	<-arrived
	time.Sleep(time.Second)
	_, err = table.Renew(t.Context(), lease.ID, "ann")
	require.NoError(t, err, "the time that it received is not over")

	require.NoError(t, table.Release(t.Context(), lease.ID, "ann"))
	if waits {
		require.NoError(t, <-passedOn)
	}
	table.Close()
	assert.NoError(t, store.Close())
	m.Close()
}
