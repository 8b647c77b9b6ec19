package locks

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// wire connects a table to its store. A test can block it in either direction. It loses nothing.
type wire struct{ there, back sync.Mutex }

// wired opens a table whose store is behind a wire. The table waits at most timeout for each answer.
func wired(t *testing.T, store *kv.Store, timeout time.Duration) (*Table, *wire) {
	t.Helper()
	w := &wire{}
	socket := filepath.Join(kvtest.Dir(t), "wire.sock")
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	var copying sync.WaitGroup
	t.Cleanup(copying.Wait)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	copying.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", strings.TrimPrefix(store.Endpoint(), "unix:"))
			if err != nil {
				_ = near.Close()
				return
			}
			copying.Go(func() { carry(far, near, &w.there) })
			copying.Go(func() { carry(near, far, &w.back) })
		}
	})
	remote, err := kv.Open(t.Context(), kv.Config{Endpoints: []string{"unix:" + socket}, Timeout: timeout})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, remote.Close()) })
	table, err := Open(t.Context(), remote, Config{InstanceTTL: time.Minute})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	return table, w
}

func carry(to, from net.Conn, open *sync.Mutex) {
	defer to.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		open.Lock()
		_, failed := to.Write(buffer[:n])
		open.Unlock()
		if err != nil || failed != nil {
			return
		}
	}
}

// The store does not answer for a moment, in which a waiter gives up. Afterwards nobody waits behind its place.
func TestAPlaceIsGivenUpOnceTheStoreAnswersAgain(t *testing.T) {
	store := kvtest.Open(t)
	near := openOver(t, store)
	held, err := near.Acquire(t.Context(), Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "ann"}, TTL: time.Minute})
	require.NoError(t, err)
	far, wire := wired(t, store, 3*time.Second)
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	gaveUp := make(chan error, 1)
	go func() {
		_, err := far.Acquire(ctx, Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "bob"}, TTL: time.Minute, Wait: 20 * time.Second})
		gaveUp <- err
	}()
	waiting := func() int {
		_, waiters, err := near.Inspect(t.Context(), Path{"a"})
		require.NoError(t, err)
		return len(waiters)
	}
	require.Eventually(t, func() bool { return waiting() == 1 }, 30*time.Second, time.Millisecond)
	wire.there.Lock()
	giveUp()
	require.ErrorIs(t, <-gaveUp, context.Canceled)
	wire.there.Unlock()
	require.Eventually(t, func() bool { return waiting() == 0 }, 30*time.Second, time.Millisecond)
	require.NoError(t, near.Release(t.Context(), held.ID, "ann"))
	_, err = near.Acquire(t.Context(), Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "eve"}, TTL: time.Minute})
	require.NoError(t, err)
}

// The caller leaves while the grant is under way. The grant was made, so the caller must receive it to release it.
func TestGrantIsReturnedAfterItsContextHasEnded(t *testing.T) {
	store := kvtest.Open(t)
	far, wire := wired(t, store, 10*time.Second)
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	type outcome struct {
		lease Lease
		err   error
	}
	done := make(chan outcome, 1)
	wire.back.Lock()
	go func() {
		lease, err := far.Acquire(ctx, Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "bob"}, TTL: time.Minute})
		done <- outcome{lease, err}
	}()
	require.Eventually(t, func() bool {
		claims, _, err := store.Range(t.Context(), claimPrefix)
		return err == nil && len(claims) == 1
	}, 30*time.Second, time.Millisecond)
	giveUp()
	time.AfterFunc(100*time.Millisecond, wire.back.Unlock)
	o := <-done
	require.NoError(t, o.err)
	require.NoError(t, far.Withdraw(t.Context(), o.lease))
	claims, _, err := store.Range(t.Context(), claimPrefix)
	require.NoError(t, err)
	assert.Empty(t, claims)
}
