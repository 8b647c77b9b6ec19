package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/static"
	"github.com/holdfast-dev/holdfast/tests/browser"
)

type brokenContext struct {
	name, host, url, before string
	words                   string
}

// brokenContexts has pages in which Web Locks cannot work, and words of the message.
func brokenContexts(w world) []brokenContext {
	return []brokenContext{
		{"insecure", "worker", w.InsecureURL("/blank"), "", "https"},
		{"insecure", "page", w.InsecureURL("/blank"), "", "https"},
		{"no Web Locks, no fallback", "page", w.URL("/blank"), "delete Navigator.prototype.locks", "no Web Locks; Chrome"},
		{"Web Locks null, no fallback", "page", w.URL("/blank"), "Object.defineProperty(navigator, 'locks', {value: null})", "no Web Locks; Chrome"},
		{"no WebAssembly", "page", w.URL("/blank"), "delete globalThis.WebAssembly", "WebAssembly is missing"},
		{"sandboxed", "page", w.URL("/sandbox"), "", "sandboxed frames"},
		{"sandboxed", "worker", w.URL("/sandbox"), "", "cannot be accessed from origin"},
	}
}

// If Web Locks cannot work, each call fails with a message that tells the user what to do.
func TestContexts(t *testing.T) {
	t.Parallel()
	mux := pages(t, siteDir)
	// A document without its own origin, as in a sandboxed frame.
	mux.HandleFunc("/sandbox", blank(func(h http.Header) { h.Set("Content-Security-Policy", "sandbox allow-scripts") }))
	w := world{browser.Start(t, quick), browser.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		mux.ServeHTTP(w, r)
	}))}
	for _, c := range brokenContexts(w) {
		t.Run(c.name+"/"+c.host, func(t *testing.T) {
			tab := w.Open(t, c.url)
			begin(tab, "")
			tab.MustEval(c.before, nil)
			options := at(c.host, "contexts")
			if strings.Contains(c.name, "no fallback") {
				options = "{...(" + options + "), strategy: 'web-lock'}"
			}
			tab.MustEval("globalThis.reasons = []; await start("+options+"); await failure(hf.ready)", nil)
			// A call that tried again would have ten minutes, and would not be answered here.
			failures := browser.Get[[]event](tab, `await Promise.all(['timeoutMs', 'ifAvailable', 'steal'].map(option =>
					failure(hf.acquireProjectLock({[option]: option === 'timeoutMs' ? 0 : true, onReadonly: e => reasons.push(e.reason)}))).concat(
				failure(hf.withProjectLock(() => 1)), failure(hf.locks.request('x', () => 1)), failure(hf.locks.query())))`)
			for _, f := range failures {
				if f["name"] == "SecurityError" { // holdfast.locks refuses like the browser
					assert.Equal(t, "sandboxed", c.name)
					continue
				}
				assert.Contains(t, []any{"unsupported", "web-lock-unsupported"}, f["code"], "%v", f)
				assert.Contains(t, f["message"], c.words)
			}
			t.Log(failures[0]["message"])
			events := browser.Get[[]event](tab, "events")
			if len(events) > 0 { // the runtime could start
				assert.Equal(t, []string{"attempt", "error", "readonly-entered"}, kinds(ofLease(events, events[0]["leaseId"].(string))))
				tab.WaitFor("reasons.length === 3", browser.Limit)
			}
			tab.MustEval("await hf.close()", nil)
			eventually(t, func() bool { return tab.Workers() == 0 }, "a worker is left")
			assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
			tab.Quiet("Cross-Origin-Opener-Policy") // the message is for secure pages
			tab.Close()
		})
	}
}

// In page host the helper is optional: locks work without it, and the console reports what is slower.
func TestPageWithoutHelper(t *testing.T) {
	t.Parallel()
	mux := pages(t, siteDir)
	mux.HandleFunc("/no-worker", blank(func(h http.Header) {
		h.Set("Content-Security-Policy", strings.Replace(h.Get("Content-Security-Policy"), "worker-src 'self'", "worker-src 'none'", 1))
	}))
	w := world{browser.Start(t, whole), browser.Serve(t, mux)}
	tab := w.Open(t, w.URL("/no-worker"))
	begin(tab, at("page", "helpless"))
	tab.MustEval("lease = await hf.acquireProjectLock({heartbeatIntervalMs: 50, ttlMs: 20_000})", nil)
	tab.Hide()
	tab.WaitFor("count('renewed') >= 3", browser.Limit)
	tab.MustEval("await lease.release(); await hf.close()", nil)
	require.True(t, slices.ContainsFunc(tab.Console(), func(m browser.Message) bool {
		return m.Level == "warning" && strings.Contains(m.Text, "heartbeats slow down while this page is hidden")
	}), "%v", tab.Console())
	assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
	tab.Quiet("worker-src")
}

// A worker of the page uses the package like a page, in either host and with either strategy. Its locks are free when
// it is terminated.
func TestPackageWorksInAWorker(t *testing.T) {
	t.Parallel()
	mux := pages(t, siteDir)
	mux.HandleFunc("/own-worker.js", func(w http.ResponseWriter, _ *http.Request) {
		static.SecurityHeaders(w.Header())
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = w.Write([]byte(`import {openHoldfast} from '/holdfast.js'
			onmessage = async ({data}) => {
				try {
					const hf = await openHoldfast(data)
					const lease = await hf.acquireProjectLock({ttlMs: 10000, heartbeatIntervalMs: 50})
					lease.signal.addEventListener('abort', () => postMessage(String(lease.signal.reason)))
					hf.addEventListener('lock:renewed', () => postMessage("renewed"), {once: true})
				} catch (error) { postMessage(String(error)) }
			}`))
	})
	w := world{browser.Start(t, quick), browser.Serve(t, mux)}
	for _, strategy := range []string{"web-lock", "file-lock"} {
		t.Run(strategy, func(t *testing.T) {
			eachHost(t, func(t *testing.T, host string) {
				options := "{host: '" + host + "', root: 'in a worker', strategy: '" + strategy + "'}"
				tab := w.tab(t, options)
				said := browser.Get[string](tab, `await new Promise((resolve, reject) => {
					globalThis.worker = new Worker('/own-worker.js', {type: 'module'})
					worker.onmessage = ({data}) => resolve(data)
					worker.onerror = e => reject(e.message ?? 'the worker was not loaded')
					worker.postMessage(`+options+`) })`)
				assert.Equal(t, "renewed", said)
				assert.Equal(t, "acquire-timeout", browser.Get[event](tab, "await failure(hf.acquireProjectLock({timeoutMs: 100}))")["code"])
				tab.MustEval("worker.terminate(); lease = await hf.acquireProjectLock({timeoutMs: 20000}); await hf.close()", nil)
			})
		})
	}
}
