package locks_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// overSlowLink returns a table over a store in memory, on whose link each transaction takes 5 ms of virtual time.
func overSlowLink(t *testing.T) (*locks.Table, *kv.Store) {
	t.Helper()
	m := memory.New()
	store := m.Client(func(_ context.Context, request string) (before, after error) {
		if request == "txn" {
			time.Sleep(5 * time.Millisecond)
		}
		return nil, nil
	})
	table := locks.OpenInMemory(t, m, store)
	return table, store
}

// drawn draws a request for places of which some exclude each other.
func drawn(r *rand.Rand, holder int) locks.Request {
	request := locks.Request{Holder: locks.Holder{ID: fmt.Sprint("holder-", holder)}, TTL: time.Hour}
	for range 1 + r.IntN(2) {
		p := locks.Path{fmt.Sprint("tree-", r.IntN(3))}
		for len(p) < 3 && r.IntN(3) > 0 {
			p = append(p, fmt.Sprint(r.IntN(2)))
		}
		request.Paths = append(request.Paths, p)
	}
	switch r.IntN(3) {
	case 0:
		request.Mode = locks.Shared
	case 1:
		request.Slots = 3
	}
	return request
}

// exclude reports whether two leases exclude each other: one of them would have to wait for the other one, or each has a slot of
// its own of the same places.
func exclude(a, b locks.Lease) bool {
	for _, p := range a.Paths {
		for _, q := range b.Paths {
			n := min(len(p), len(q))
			if fmt.Sprint(p[:n]) != fmt.Sprint(q[:n]) {
				continue
			}
			above, below := len(p) < len(q), len(p) > len(q)
			if above && a.Mode != locks.Shared || below && b.Mode != locks.Shared {
				return true
			}
			if len(p) == len(q) && (a.Mode != locks.Shared || b.Mode != locks.Shared) {
				return true
			}
		}
	}
	return false
}

// Many holders acquire and release at once, so that their transactions share revisions. Leases that exclude each other,
// or have one holder, never share a token, and each later one has a higher token than those before it.
func TestTokensOfGrantsThatShareARevision(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		table, _ := overSlowLink(t)
		var mu sync.Mutex
		var grants []locks.Lease
		var highest int64
		var working sync.WaitGroup
		for worker := range 60 {
			working.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(worker)))
				for range 20 {
					request := drawn(r, worker/2) // two tabs of one browser
					if r.IntN(2) == 0 {
						request.Wait = 50 * time.Millisecond
					}
					mu.Lock()
					before := highest
					mu.Unlock()
					lease, err := table.Acquire(t.Context(), request)
					var denied *locks.DeniedError
					if errors.As(err, &denied) || errors.Is(err, locks.ErrDeadlock) {
						continue
					}
					if !assert.NoError(t, err) {
						return
					}
					mu.Lock()
					assert.Greater(t, lease.Token, before)
					grants, highest = append(grants, lease), max(highest, lease.Token)
					mu.Unlock()
					assert.NoError(t, table.Release(t.Context(), lease.ID, request.Holder.ID))
				}
			})
		}
		working.Wait()
		byToken := map[int64][]locks.Lease{}
		shared := 0
		for _, l := range grants {
			for _, other := range byToken[l.Token] {
				shared++
				assert.NotEqual(t, other.Holder, l.Holder)
				assert.False(t, exclude(other, l), "%v and %v", other, l)
			}
			byToken[l.Token] = append(byToken[l.Token], l)
		}
		t.Logf("%d grants, %d pairs share a token", len(grants), shared)
		assert.Positive(t, shared, "otherwise the test shows nothing")
	})
}

// Requests that join the queue at one moment have different places, so that they are served in one order.
func TestPlacesOfRequestsThatWaitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, store := overSlowLink(t)
		_, err := table.Acquire(t.Context(), want(ann, at("a")))
		require.NoError(t, err)
		ctx, giveUp := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for i := range 20 {
			waiting.Go(func() {
				r := want(who(fmt.Sprint(i)), at("a", fmt.Sprint(i)))
				r.Wait = time.Minute
				_, err := table.Acquire(ctx, r)
				assert.ErrorIs(t, err, context.Canceled)
			})
		}
		time.Sleep(time.Second)
		entries, _, err := store.Range(t.Context(), "locks/stub/")
		require.NoError(t, err)
		require.Len(t, entries, 20)
		places := map[int64]bool{}
		for _, e := range entries {
			places[e.Created] = true
		}
		assert.Len(t, places, 20)
		giveUp()
		waiting.Wait()
	})
}

// Leases that one holder gets at one moment have different tokens: a browser tells its leases apart by them.
func TestTokensOfOneHolderDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, _ := overSlowLink(t)
		var mu sync.Mutex
		var acquiring sync.WaitGroup
		tokens := map[int64]bool{}
		for i := range 20 {
			acquiring.Go(func() {
				lease, err := table.Acquire(t.Context(), want(ann, at(fmt.Sprint(i))))
				assert.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				tokens[lease.Token] = true
			})
		}
		acquiring.Wait()
		assert.Len(t, tokens, 20)
	})
}
