package engines

import (
	"math"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

const uuidV4 = `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`

// The clocks of a page and of Go are comparable, which the handover tests need.
func testClocks(s *stage) {
	p := s.blank(s.site.URL(BlankPage))
	off := math.Inf(1)                      // at most
	for n := 0; n < 100 && off >= 20; n++ { // the fastest answer is the most exact
		early, now, late := clock(), get[float64](p, "now()"), clock()
		off = min(off, max(late-now, now-early))
	}
	s.Logf("off by %.1f ms at most", off)
	assert.Less(s, off, 20.0)
}

func testOpen(s *stage) {
	p := s.open()
	assert.NotEmpty(s, get[string](p, "hf.version"))
	assert.Regexp(s, uuidV4, get[string](p, "hf.ownerId"))
	assert.True(s, get[bool](p, "hf instanceof EventTarget"))
}

// Acquire, heartbeat and release cause events in the order of the declaration.
func testSequence(s *stage) {
	const interval = 200.0
	p := s.open()
	p.do("lease = await hf.acquireProjectLock({heartbeatIntervalMs: 200, ttlMs: 20_000})")
	p.wait("count('renewed') >= 4")
	assert.Equal(s, 1, get[int](p, "(await locks('"+s.root+"')).held"))
	p.do("await lease.release()")
	assert.Equal(s, 0, get[int](p, "(await locks('"+s.root+"')).held"))

	want := []string{"attempt", "acquired", "renew-scheduled"}
	for range get[int](p, "count('renewed')") {
		want = append(want, "renewed", "renew-scheduled")
	}
	require.Equal(s, append(want, "release-requested", "released"), get[[]string](p, "types().filter(type => type !== 'warning')"), "a warning says that a heartbeat was late")
	assert.True(s, get[bool](p, "events.every(e => e.leaseId === lease.leaseId && e.ownerId === hf.ownerId)"))
	assert.Equal(s, "web-lock", get[string](p, "lease.strategy"))
	assert.True(s, get[bool](p, "lease.signal.aborted && Object.isFrozen(lease)"))

	beats := get[[]float64](p, "events.filter(e => e.type === 'lock:renewed').map(e => e.at)")
	latest := 0.0
	for i := range beats[1:] {
		gap := beats[i+1] - beats[i]
		assert.GreaterOrEqual(s, gap, interval-3, "each instant is cut to a millisecond, and a timer may be early by one")
		latest = max(latest, gap-interval)
	}
	s.note("latest beat", latest)
	assert.Less(s, latest, browser.Prompt)
}

// Each refusal has its code, comes in time, and leaves nothing in the queue.
func testRefusals(s *stage) {
	holder, p := s.open(), s.open()
	holder.do("lease = await hf.acquireProjectLock()")
	for _, refusal := range []struct {
		options, code string
		waits         int     // the number of waiting events
		after         float64 // ms; a second more is allowed, for busy machines
	}{
		{"{ifAvailable: true}", "acquire-denied", 0, 0},
		{"{timeoutMs: 0}", "acquire-timeout", 0, 0},
		{"{timeoutMs: 2000, backoff: {initialDelayMs: 600000, maxDelayMs: 600000}}", "acquire-timeout", 1, 1995},
		{"{backoff: {initialDelayMs: 50, multiplier: 1, jitter: 0, maxRetries: 2}}", "acquire-timeout", 2, 98},
		{"{signal: AbortSignal.abort()}", "aborted", 0, 0},
		{"{signal: later.signal, backoff: {initialDelayMs: 600000, maxDelayMs: 600000}}", "aborted", 1, 0},
	} {
		p.do(`events.length = 0
			globalThis.later = new AbortController()
			hf.addEventListener("lock:waiting", () => later.abort(), {once: true})`)
		got := get[problem](p, "await failure(hf.acquireProjectLock("+refusal.options+"))")
		assert.Equal(s, refusal.code, got.Code, "%s: %+v", refusal.options, got)
		assert.Equal(s, "ProjectLockError", got.Name)
		assert.Equal(s, refusal.code != "aborted", got.Retryable)
		assert.GreaterOrEqual(s, got.Took, refusal.after, refusal.options)
		assert.Less(s, got.Took, refusal.after+browser.Prompt, refusal.options)
		assert.Equal(s, refusal.waits, get[int](p, "count('waiting')"), refusal.options)
		assert.Equal(s, []string{"error", "readonly-entered"}, get[[]string](p, "types().slice(-2)"), refusal.options)
		p.wait("(await locks('" + s.root + "')).pending === 0")
	}
	assert.Equal(s, 1, get[int](holder, "(await locks('"+s.root+"')).held"))
}

// A client that steals gets the lock at once, and the former holder receives exactly one event.
func testSteal(s *stage) {
	holder, stealer := s.open(), s.open()
	holder.do(`globalThis.readonly = []
		lease = await hf.acquireProjectLock({heartbeatIntervalMs: 100, ttlMs: 20_000, onReadonly: e => readonly.push(e.reason)})`)
	stealer.do("lease = await hf.acquireProjectLock({steal: true, heartbeatIntervalMs: 100, ttlMs: 20_000})")
	holder.wait("readonly.length > 0")
	stealer.wait("count('renewed') >= 3") // an event that came twice has arrived by then
	assert.Equal(s, []string{"error", "readonly-entered"}, get[[]string](holder, "types().slice(-2)"))
	assert.Equal(s, "lease-lost", get[string](holder, "events.at(-2).error.code"))
	assert.Equal(s, []string{"lease-lost"}, get[[]string](holder, "readonly"))
	assert.Equal(s, 1, get[int](holder, "count('readonly-entered')"))
	assert.Equal(s, "lease-lost", get[string](holder, "lease.signal.reason.code"))
	assert.Greater(s, get[int64](stealer, "lease.token"), get[int64](holder, "lease.token"))
	holder.do("await lease.release()")
	assert.Equal(s, 1, get[int](stealer, "(await locks('"+s.root+"')).held"), "the former holder changes nothing")
	assert.False(s, get[bool](stealer, "lease.signal.aborted"))
}

func testWith(s *stage) {
	p := s.open()
	assert.Equal(s, 1, get[int](p, "await hf.withProjectLock(async () => (await locks('"+s.root+"')).held)"))
	got := get[problem](p, "await failure(hf.withProjectLock(() => { throw new RangeError('mine') }))")
	assert.Equal(s, "RangeError", got.Name)
	assert.Equal(s, 0, get[int](p, "(await locks('"+s.root+"')).held"))
	assert.Equal(s, []string{"release-requested", "released"}, get[[]string](p, "types().slice(-2)"))
}

// In engines without the symbol, the package brings the one that compilers of `await using` fall back to.
func testDispose(s *stage) {
	p := s.open()
	p.do("lease = await hf.acquireProjectLock()")
	p.do("await lease[Symbol.asyncDispose]()")
	assert.Equal(s, 0, get[int](p, "(await locks('"+s.root+"')).held"))
	assert.Equal(s, []string{"release-requested", "released"}, get[[]string](p, "types().slice(-2)"))
}
