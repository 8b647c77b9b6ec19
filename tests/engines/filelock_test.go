package engines

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// files opens a tab with a Holdfast over the file of the stage.
func (s *stage) files() *page {
	s.Helper()
	p := s.blank(s.site.URL(BlankPage))
	p.do("await start(" + s.options("strategy: 'file-lock'") + ")")
	return p
}

// hasFiles reports whether the engine supports file locks. If not, it asserts that and the scenario ends.
func (s *stage) hasFiles() bool {
	s.Helper()
	if Known[s.engineName]["OPFS sync access handles"] == "yes" {
		return true
	}
	p := s.files()
	for _, call := range []string{"hf.acquireProjectLock()", "hf.locks.request('x', () => {})", "hf.withProjectLock(() => {})"} {
		refused := get[problem](p, "await failure("+call+")")
		assert.Equal(s, "unsupported", refused.Code, call)
		assert.NotEmpty(s, refused.Message)
		assert.Less(s, refused.Took, browser.Prompt)
	}
	assert.Equal(s, []string{"attempt", "error", "readonly-entered"}, get[[]string](p, "types()")[:3])
	return false
}

// A lease over the file has the same events, refusals and handover on release.
func testFileLease(s *stage) {
	if !s.hasFiles() {
		return
	}
	holder, waiter := s.files(), s.files()
	holder.do("lease = await hf.acquireProjectLock({heartbeatIntervalMs: 300, ttlMs: 20_000})")
	assert.Equal(s, "file-lock", get[string](holder, "lease.strategy"))
	assert.Equal(s, s.root+"/.lock", get[string](holder, "lease.resource"))
	refused := get[problem](waiter, "await failure(hf.acquireProjectLock({ifAvailable: true}))")
	assert.Equal(s, "fallback-conflict", refused.Code)
	holder.wait("count('renewed') >= 2")
	waiter.do("events.length = 0; hf.acquireProjectLock({backoff: {maxRetries: 0}}).then(l => { got = now(); lease = l })")
	waiter.wait("count('waiting') > 0")
	since := get[float64](holder, "await (async () => { const since = now(); await lease.release(); return since })()")
	waiter.wait("got")
	s.note("file: release", get[float64](waiter, "got")-since)
	assert.Greater(s, get[float64](waiter, "lease.token"), get[float64](holder, "lease.token"))

	holder.do("globalThis.mine = await hf.acquireProjectLock({steal: true})")
	waiter.wait("lease.signal.aborted")
	assert.Equal(s, "lease-lost", get[string](waiter, "lease.signal.reason.code"))
	holder.do("await mine.release()")
}

// dead asserts that a waiter gets the lock soon after the holder's end, for this way of ending.
func dead(s *stage, column string, end func(holder *page) (since float64)) {
	if !s.hasFiles() {
		return
	}
	holder, waiter := s.files(), s.files()
	holder.do("lease = await hf.acquireProjectLock()")
	waiter.do("hf.acquireProjectLock({backoff: {maxRetries: 0}}).then(l => { got = now(); lease = l })")
	waiter.wait("count('waiting') > 0")
	since := end(holder)
	waiter.wait("got")
	latency := get[float64](waiter, "got") - since
	s.note(column, latency)
	assert.Less(s, latency, browser.Prompt)
	waiter.do("await lease.release()")
}

func testFileClose(s *stage) {
	dead(s, "file: close", func(holder *page) float64 {
		since := clock()
		s.gone(holder)
		require.NoError(s, holder.tab.Close())
		return since
	})
}

func testFileReload(s *stage) {
	dead(s, "file: reload", func(holder *page) float64 {
		since := clock()
		require.NoError(s, holder.tab.Reload())
		return since
	})
}

// The end begins when the tab leaves the page: until the next page arrives, it still exists.
func testFileNavigate(s *stage) {
	dead(s, "file: navigate", func(holder *page) float64 {
		s.gone(holder)
		holder.do("localStorage.left = 0; addEventListener('pagehide', () => { localStorage.left = now() })")
		holder.do("setTimeout(() => location.assign('" + s.site.URL(BlankPage) + "?next'), 100)")
		other := s.blank(s.site.URL(BlankPage))
		other.wait("Number(localStorage.left)")
		return get[float64](other, "Number(localStorage.left)")
	})
}

func testFileKill(s *stage) {
	s.needs("kill")
	dead(s, "file: kill", func(holder *page) float64 {
		s.gone(holder)
		since, err := holder.tab.Kill()
		require.NoError(s, err)
		return millis(since)
	})
}

// With file storage, the file contains the record of a lease over Web Locks. The lease works in any case.
func testRecord(s *stage) {
	holder, other := s.open(), s.open()
	first := get[float64](holder, "await (async () => { lease = await hf.acquireProjectLock({heartbeatIntervalMs: 300, ttlMs: 20_000}); return lease.token })()")
	holder.wait("count('renewed') >= 2")
	if Known[s.engineName]["OPFS sync access handles"] == "yes" {
		assert.True(s, get[bool](holder, `await (async () => {
			for (;;) try {
				const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('`+s.root+`')
				return (await (await (await folder.getFileHandle('.lock')).getFile()).text()).includes(lease.leaseId)
			} catch (e) { if (e.name !== 'NotReadableError') throw e }
		})()`))
	}
	holder.do("await lease.release()")
	other.do("lease = await hf.acquireProjectLock()")
	assert.Greater(s, get[float64](other, "lease.token"), first)
	other.do("await lease.release()")
	assert.Equal(s, 0, get[int](holder, "count('warning')"))
}

// Damage to the file under a holder keeps others out and is reported.
func testFileDamage(s *stage) {
	if !s.hasFiles() {
		return
	}
	holder, waiter := s.files(), s.files()
	for _, damage := range []string{"garbage", "{}", ""} {
		holder.do("events.length = 0; lease = await hf.acquireProjectLock()")
		holder.do(`const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('` + s.root + `')
			for (let written = false; !written;) try {
				const stream = await (await folder.getFileHandle('.lock')).createWritable()
				await stream.write("` + damage + `")
				await stream.close()
				written = true
			} catch (e) { if (!['NoModificationAllowedError', 'NotReadableError'].includes(e.name)) throw e }`)
		assert.Equal(s, "fallback-conflict", get[problem](waiter, "await failure(hf.acquireProjectLock({ifAvailable: true}))").Code)
		assert.False(s, get[bool](holder, "lease.signal.aborted"))
		holder.do("await lease.release()")
		waiter.do("await (await hf.acquireProjectLock({timeoutMs: 10000})).release()")
	}
	assert.True(s, get[bool](holder, "count('warning') > 0") || get[bool](waiter, "count('warning') > 0"))
}
