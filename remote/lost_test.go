package remote_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
	"github.com/holdfast-dev/holdfast/remote"
)

// A grant whose local lock was stolen is already lost at the first look: a manager looks once before it makes a lease.
func TestStolenGrantIsLostAtFirstLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		space := locktest.NewSpace()
		d := remote.NewDocument(remote.Config{Server: &browser{net: newInternet(), session: "A"}, URL: "https://locks.example", Document: "project",
			Local: lock.Backend{Strategy: lock.WebLock, Resource: "holdfast:project", Locker: space.Client("a")}})
		b := d.Backend()
		grant, err := b.Locker.Request(t.Context(), lock.Request{Wants: []lock.Want{{Name: b.Name(), Mode: lock.Exclusive}}})
		require.NoError(t, err)
		stealer, err := space.Client("stealer").Request(t.Context(), lock.Request{Wants: []lock.Want{{Name: "holdfast:project", Mode: lock.Exclusive}}, Steal: true})
		require.NoError(t, err)
		assert.True(t, wait.Closed(grant.Lost()))
		require.NoError(t, stealer.Release(t.Context()))
		require.NoError(t, grant.Release(t.Context()))
	})
}

// A client that steals, and whose local lock is stolen while it waits for another machine, waits on and does not steal
// again.
func TestClientStolenFromAfterStealWaitsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, release := behindAnotherMachine(t)
		steal := patient
		steal.Steal = true
		done := h.open(t, "B", "b").begin(context.Background(), steal)
		sleep(time.Second)
		second, err := h.space.Client("second").Request(t.Context(), lock.Request{Wants: []lock.Want{{Name: "holdfast:project", Mode: lock.Exclusive}}, Steal: true})
		require.NoError(t, err)
		sleep(20 * time.Second)
		assert.Empty(t, done)
		assert.False(t, wait.Closed(second.Lost()))
		require.NoError(t, second.Release(t.Context()))
		release()
		require.NoError(t, <-done)
	})
}
