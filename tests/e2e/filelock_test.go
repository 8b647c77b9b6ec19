package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/static"
	"github.com/holdfast-dev/holdfast/tests/browser"
)

// filesAt returns the options of a Holdfast that locks over a file, whatever the browser supports.
func filesAt(host, root, name string) string {
	return fmt.Sprintf("{strategy: 'file-lock', host: '%s', root: '%s', ownerName: '%s'}", host, root, name)
}

// The same page over a file: forced, and in a browser without Web Locks.
func TestFileLock(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "files-" + host
		a := w.tab(t, filesAt(host, root, "Ann"))
		a.MustEval(`lease = await hf.acquireProjectLock({heartbeatIntervalMs: 300, ttlMs: 20_000})`, nil)
		assert.Equal(t, []string{"attempt", "acquired", "renew-scheduled"}, kinds(told(t, a))[:3])
		assert.Equal(t, "file-lock", browser.Get[string](a, "lease.strategy"))
		assert.Equal(t, root+"/.lock", browser.Get[string](a, "lease.resource"))

		b := w.tab(t, filesAt(host, root, "Ben"))
		b.MustEval(`waiting = hf.acquireProjectLock({backoff: {maxRetries: 0}}); null`, nil)
		b.WaitFor(`types().includes('waiting')`, browser.Limit)
		assert.Equal(t, []string{"attempt", "error", "warning", "waiting"}, browser.Get[[]string](b, `types()`)[:4])
		assert.Equal(t, "fallback-conflict", browser.Get[string](b, `events[1].error.code`))
		assert.Equal(t, "fallback-degraded", browser.Get[string](b, `events[2].warning`))
		a.WaitFor(`types().includes('renewed')`, browser.Limit)
		a.MustEval(`await lease.release()`, nil)
		b.MustEval(`lease = await waiting`, nil)
		assert.Greater(t, browser.Get[float64](b, "lease.token"), browser.Get[float64](a, "lease.token"))
		b.MustEval(`await lease.release(); await hf.close()`, nil)
		a.MustEval(`await hf.close()`, nil)
		a.Quiet()
		b.Quiet()
	})
}

// The locks of a dead page reach its waiter long before their TTL of 30 s. In a page, the worker that has its files
// open ends with it.
func TestFileLockOfDeadPageIsFreedBeforeItsTTL(t *testing.T) {
	t.Parallel()
	w := world{browser.Start(t, quick), site(t, faultsDir)}
	eachHost(t, func(t *testing.T, host string) {
		for name, end := range map[string]func(*browser.Tab){
			"closed":    (*browser.Tab).Close,
			"reloaded":  (*browser.Tab).Reload,
			"navigated": func(tab *browser.Tab) { tab.Navigate("about:blank") },
			"crashed":   (*browser.Tab).Crash,
			"panicked":  func(tab *browser.Tab) { tab.MustEval("hf.acquireProjectLock({mode: 'fault:goroutine'}); 1", nil) },
		} {
			t.Run(name, func(t *testing.T) {
				root := "dead-" + host + "-" + name
				holder, waiter := w.tab(t, filesAt(host, root, "Ann")), w.tab(t, filesAt(host, root, "Ben"))
				holder.MustEval("lease = await hf.acquireProjectLock()", nil)
				waiter.MustEval("globalThis.got = 0; result = hf.acquireProjectLock({backoff: {maxRetries: 0}}).then(l => { got = now(); lease = l }); 1", nil)
				waiter.WaitFor("types().includes('waiting')", browser.Limit)
				before := clock()
				end(holder)
				waiter.WaitFor("got", browser.Limit)
				latency := browser.Get[float64](waiter, "got") - before
				t.Logf("%s: granted %.0f ms after the end began", name, latency)
				assert.Less(t, latency, browser.Prompt)
				waiter.MustEval("await lease.release(); await hf.close()", nil)
				waiter.Quiet()
			})
		}
	})
}

// With a full disk a request is refused with a message, and an existing lease is not harmed. The same call works when
// there is space again.
func TestFileLockWithoutRoom(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "full-" + host
		holder, tab := w.tab(t, filesAt(host, root+"-held", "Ann")), w.tab(t, filesAt(host, root, "Ben"))
		holder.MustEval("lease = await hf.acquireProjectLock({heartbeatIntervalMs: 100, ttlMs: 5000})", nil)
		holder.Quota(w.URL(""), 1)
		failed := browser.Get[event](tab, "await failure(hf.acquireProjectLock())")
		assert.Equal(t, "unsupported", failed["code"])
		assert.Contains(t, failed["message"], "full")
		assert.Equal(t, []string{"attempt", "error", "readonly-entered"}, kinds(told(t, tab)))
		holder.MustEval("events.length = 0; await new Promise(done => setTimeout(done, 500))", nil)
		assert.False(t, browser.Get[bool](holder, "lease.signal.aborted"))
		holder.Quota(w.URL(""), 0)
		holder.WaitFor("types().includes('renewed')", browser.Limit)
		tab.MustEval("lease = await hf.acquireProjectLock(); await lease.release(); await hf.close()", nil)
		holder.MustEval("await lease.release(); await hf.close()", nil)
		tab.Quiet()
		holder.Quiet()
	})
}

// served serves the site with a script before those in which Go runs.
func served(t *testing.T, before string) *http.ServeMux {
	mux := pages(t, siteDir)
	for _, name := range []string{"/holdfast-worker.js", "/holdfast-page.js", "/holdfast-helper.js"} {
		script, err := os.ReadFile(filepath.Join(siteDir, name))
		require.NoError(t, err)
		mux.HandleFunc(name, func(w http.ResponseWriter, _ *http.Request) {
			static.SecurityHeaders(w.Header())
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write(append([]byte(before+"\n"), script...))
		})
	}
	return mux
}

// If the browser refuses files, as in private windows of some browsers, a lease is refused at once with the reason
// and the usual events. It does not matter whether the file was requested or a fallback.
func TestFileLockIsRefused(t *testing.T) {
	t.Parallel()
	const private = "StorageManager.prototype.getDirectory = () => Promise.reject(new DOMException('planted', 'SecurityError'));"
	const none = private + "Object.defineProperty(navigator, 'locks', {value: undefined});"
	forced := world{browser.Start(t, quick), browser.Serve(t, served(t, private))}
	fallback := world{forced.Browser, browser.Serve(t, served(t, none))}
	eachHost(t, func(t *testing.T, host string) {
		tab := forced.tab(t, filesAt(host, "private-"+host, "Ann"))
		failed := browser.Get[event](tab, "await failure(hf.acquireProjectLock())")
		assert.Equal(t, "unsupported", failed["code"])
		assert.Contains(t, failed["message"], "private windows")
		assert.Less(t, failed.number("took"), browser.Prompt)
		assert.Equal(t, []string{"attempt", "error", "readonly-entered"}, kinds(told(t, tab)))
		tab.MustEval("await hf.close()", nil)
		tab.Quiet()

		tab = fallback.tab(t, "")
		tab.MustEval("Object.defineProperty(navigator, 'locks', {value: undefined}); await start("+at(host, "private-"+host)+")", nil)
		failed = browser.Get[event](tab, "await failure(hf.acquireProjectLock())")
		assert.Equal(t, "unsupported", failed["code"])
		assert.Equal(t, []string{"attempt", "error", "attempt", "error", "readonly-entered"}, kinds(told(t, tab)))
		assert.Equal(t, "web-lock-unsupported", browser.Get[string](tab, "events[1].error.code"))
		tab.MustEval("await hf.close()", nil)
		tab.Quiet()
	})
}

func TestFallback(t *testing.T) {
	t.Parallel()
	const remove = "Object.defineProperty(navigator, 'locks', {value: undefined});"
	w := world{browser.Start(t, quick), browser.Serve(t, served(t, remove))}
	eachHost(t, func(t *testing.T, host string) { testFallback(t, w.tab(t, ""), host) })
}

func testFallback(t *testing.T, tab *browser.Tab, host string) {
	tab.MustEval(`
		Object.defineProperty(navigator, 'locks', {value: undefined})
		await start(`+at(host, "fallback-"+host)+`)
		lease = await hf.acquireProjectLock()
		await hf.renewProjectLock(lease)
		await lease.release()`, nil)
	events := undelayed(browser.Get[[]event](tab, "events"))
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
