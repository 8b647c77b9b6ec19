package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/static"
	"github.com/holdfast-dev/holdfast/tests/browser"
)

// The same page on a file: forced, and where the browser has no Web Locks.
func TestFileLock(t *testing.T) {
	t.Parallel()
	w := open(t, browser.Options{})
	a := w.tab(t, `{strategy: 'file-lock', root: 'files', ownerName: 'Ann'}`)
	a.MustEval(`lease = await hf.acquireProjectLock({heartbeatIntervalMs: 300, ttlMs: 2000})`, nil)
	assert.Equal(t, []string{"attempt", "acquired", "renew-scheduled"}, kinds(told(t, a)))
	assert.Equal(t, "file-lock", browser.Get[string](a, "lease.strategy"))
	assert.Equal(t, "files/.lock", browser.Get[string](a, "lease.resource"))

	b := w.tab(t, `{strategy: 'file-lock', root: 'files', ownerName: 'Ben'}`)
	b.MustEval(`waiting = hf.acquireProjectLock({backoff: {maxRetries: 0}}); null`, nil)
	b.WaitFor(`types().includes('waiting')`, browser.Limit)
	assert.Equal(t, []string{"attempt", "error", "warning", "waiting"}, browser.Get[[]string](b, `types()`)[:4])
	assert.Equal(t, "fallback-conflict", browser.Get[string](b, `events[1].error.code`))
	assert.Equal(t, "fallback-degraded", browser.Get[string](b, `events[2].warning`))
	a.WaitFor(`types().includes('renewed')`, browser.Limit)
	a.MustEval(`await lease.release()`, nil)
	b.MustEval(`lease = await waiting`, nil)
	assert.Greater(t, browser.Get[float64](b, "lease.token"), browser.Get[float64](a, "lease.token"))

	// The dead give their lock back long before its TTL of 30 s.
	a.MustEval(`waiting = hf.acquireProjectLock({backoff: {maxRetries: 0}}); null`, nil)
	a.WaitFor(`types().includes('waiting')`, browser.Limit)
	began := time.Now()
	b.Crash()
	a.MustEval(`lease = await waiting`, nil)
	assert.Less(t, time.Since(began), 3*time.Second)
	a.MustEval(`await lease.release(); await hf.close()`, nil)
	a.Quiet()
}

// withoutWebLocks serves the site to a browser that has none, in the page and in the worker.
func withoutWebLocks(t *testing.T) *http.ServeMux {
	const remove = "Object.defineProperty(navigator, 'locks', {value: undefined});"
	worker, err := os.ReadFile(filepath.Join(siteDir, "holdfast-worker.js"))
	require.NoError(t, err)
	mux := pages(t, siteDir)
	mux.HandleFunc("/holdfast-worker.js", func(w http.ResponseWriter, _ *http.Request) {
		static.SecurityHeaders(w.Header())
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = w.Write(append([]byte(remove), worker...))
	})
	return mux
}

func TestFallback(t *testing.T) {
	t.Parallel()
	w := world{browser.Start(t, browser.Options{}), browser.Serve(t, withoutWebLocks(t))}
	tab := w.tab(t, "")
	tab.MustEval(`
		Object.defineProperty(navigator, 'locks', {value: undefined})
		await start({root: 'fallback', ownerName: 'Ann'})
		lease = await hf.acquireProjectLock({heartbeatIntervalMs: 300})
		await new Promise(done => hf.addEventListener('lock:renewed', done, {once: true}))
		await lease.release()`, nil)
	events := browser.Get[[]event](tab, "events")
	assert.Equal(t, []string{"attempt", "error", "attempt", "warning", "fallback-engaged", "acquired", "renew-scheduled",
		"renewed", "renew-scheduled", "release-requested", "released"}, kinds(events))
	assert.Equal(t, "web-lock", events[0]["strategy"])
	assert.Equal(t, "web-lock-unsupported", events[1].code())
	assert.Equal(t, true, events[1]["retryable"])
	assert.Equal(t, "file-lock", events[2]["strategy"])
	assert.Equal(t, "fallback-engaged", events[3]["warning"])
	assert.Equal(t, true, events[4].object("lease")["viaFallback"])
	assert.Equal(t, 30000.0, events[5].object("lease").number("ttlMs"))
	for _, e := range events {
		assert.Equal(t, events[0]["leaseId"], e["leaseId"])
	}
	tab.MustEval(`await hf.close()`, nil)
	tab.Quiet()
}
