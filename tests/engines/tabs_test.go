package engines

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// handOverLimit is how much later than a bare Web Lock's waiter a waiting tab may acquire, in milliseconds, when the
// holder of both ends. Both times contain the browser's time to close or load a page, however busy the machine is. Without
// the browser's queue, the waiter would come ten minutes later.
const handOverLimit = 5000.0

// handOver asserts that a waiting tab acquires as soon as the holder has ended. The control is a bare Web Lock of the
// holder's page with a waiter in the same tab.
func handOver(s *stage, column string, end func(holder *page) (since float64)) {
	s.Helper()
	holder, waiter := s.open(), s.open()
	holder.do(`lease = await hf.acquireProjectLock({ttlMs: 60000})
		await new Promise(held => navigator.locks.request("control", () => new Promise(free => { globalThis.free = free; held() })))`)
	// Retries would take ten minutes: only the browser's queue is as fast as this.
	waiter.do(`navigator.locks.request("control", () => { globalThis.freed = now() })
		hf.acquireProjectLock({backoff: {initialDelayMs: 600000, maxDelayMs: 600000, maxRetries: 0}})
			.then(l => { got = now(); lease = l })`)
	waiter.wait("count('waiting') > 0")
	holder.wait("(await locks('" + s.root + "')).pending === 1 && (await locks('control')).pending === 1")
	since := end(holder)
	waiter.wait("got && globalThis.freed")
	latency, control := get[float64](waiter, "got")-since, get[float64](waiter, "freed")-since
	s.Logf("control: %.1f ms", control)
	s.note(column, latency)
	assert.Less(s, latency-control, handOverLimit, "handed over in %.1f ms, the control in %.1f ms", latency, control)
	assert.Equal(s, []string{"attempt", "error", "waiting", "attempt", "acquired", "renew-scheduled"}, get[[]string](waiter, "types()"))
	waiter.do("await lease.release()")
	assert.Equal(s, 0, get[int](waiter, "(await locks('"+s.root+"')).held"))
}

func testHandoverOnRelease(s *stage) {
	handOver(s, "release", func(holder *page) float64 {
		return get[float64](holder, "await (async () => { const since = now(); free(); await lease.release(); return since })()")
	})
}

func testHandoverOnClose(s *stage) {
	handOver(s, "close", func(holder *page) float64 {
		since := clock()
		s.gone(holder)
		require.NoError(s, holder.tab.Close())
		return since
	})
}

func testHandoverOnReload(s *stage) {
	handOver(s, "reload", func(holder *page) float64 {
		since := clock()
		require.NoError(s, holder.tab.Reload())
		return since
	})
}

func testHandoverOnKill(s *stage) {
	s.needs("kill")
	handOver(s, "kill", func(holder *page) float64 {
		s.gone(holder)
		since, err := holder.tab.Kill()
		require.NoError(s, err)
		return millis(since)
	})
}

// Each tab sees the holders, and for whom each waiter waits.
func testInspect(s *stage) {
	holder, waiter := s.open(), s.open()
	holder.do("lease = await hf.acquireProjectLock()")
	waiter.do("hf.acquireProjectLock({backoff: {maxRetries: 0}}).then(l => { got = now(); lease = l })")
	holder.wait("(await locks('" + s.root + "')).pending === 1")
	type owner struct {
		Resource, Mode, OwnerID, OwnerName, LeaseID string
		Since                                       float64
		WaitsFor                                    []string
	}
	type view struct{ Held, Pending []owner }
	holds, waits := get[string](holder, "hf.ownerId"), get[string](waiter, "hf.ownerId")
	for _, p := range []*page{holder, waiter} {
		// A tab that is too busy to answer in time has no name.
		p.wait("(globalThis.seen = await hf.inspect(), [...seen.held, ...seen.pending].every(({leaseId}) => leaseId))")
		seen := get[view](p, "seen")
		require.Len(s, seen.Held, 1)
		require.Len(s, seen.Pending, 1)
		held, pending := seen.Held[0], seen.Pending[0]
		assert.Equal(s, holds, held.OwnerID)
		assert.Equal(s, "Ann", held.OwnerName)
		assert.Equal(s, get[string](holder, "lease.leaseId"), held.LeaseID)
		assert.Equal(s, "holdfast:"+s.root, held.Resource)
		assert.Equal(s, get[float64](holder, "lease.acquiredAt"), held.Since)
		assert.Equal(s, waits, pending.OwnerID)
		assert.Equal(s, []string{holds}, pending.WaitsFor)
	}
	holder.do("await lease.release()")
	waiter.wait("got")
}

// close ends pending acquisitions, releases leases, and ends the runtime.
func testClose(s *stage) {
	holder, other := s.open(), s.open()
	holder.do("lease = await hf.acquireProjectLock(); globalThis.lost = failure(hf.acquireProjectLock({backoff: {maxRetries: 0}}))")
	holder.wait("(await locks('" + s.root + "')).pending === 1")
	holder.do("await hf.close()")
	assert.Equal(s, map[string]int{"held": 0, "pending": 0}, get[map[string]int](holder, "await locks('"+s.root+"')"))
	assert.Equal(s, "aborted", get[problem](holder, "await lost").Code)
	assert.Equal(s, "aborted", get[problem](holder, "await failure(hf.acquireProjectLock())").Code)
	assert.True(s, get[bool](holder, "lease.signal.aborted"))
	other.do("await (await hf.acquireProjectLock({timeoutMs: 0})).release()")
}
