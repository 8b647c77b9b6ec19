package e2e

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// troubled serves the package in several folders, each with its own defect, and pages with policies that are too
// strict.
func troubled(t *testing.T) http.Handler {
	t.Helper()
	mux := pages(t, siteDir)
	whole := http.NewServeMux()
	whole.Handle("/", mux)
	script := func(name string) []byte {
		data, err := os.ReadFile(siteDir + "/" + name)
		require.NoError(t, err)
		return data
	}
	wasm := script("holdfast.wasm")
	serve := func(kind string, data []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(data)
		}
	}
	for folder, wasmHandler := range map[string]http.HandlerFunc{
		"nowasm":  http.NotFound,
		"typed":   serve("application/octet-stream", wasm),
		"charset": serve("application/wasm; charset=utf-8", wasm),
		"html":    serve("text/html", []byte("<!doctype html><title>Not here</title>")),
		"cut":     serve("application/wasm", wasm[:len(wasm)/2]),
		"stalled": stall,
	} {
		for _, name := range []string{"holdfast-host.js", "holdfast-worker.js", "holdfast-page.js", "holdfast-helper.js", "holdfast-early.js"} {
			whole.HandleFunc("/"+folder+"/"+name, serve("text/javascript", script(name)))
		}
		whole.HandleFunc("/"+folder+"/holdfast.wasm", wasmHandler)
	}
	for _, folder := range []string{"deaf", "broken", "noworker"} {
		whole.HandleFunc("/"+folder+"/holdfast-host.js", serve("text/javascript", script("holdfast-host.js")))
		whole.HandleFunc("/"+folder+"/holdfast-early.js", serve("text/javascript", script("holdfast-early.js")))
		whole.HandleFunc("/"+folder+"/holdfast.wasm", serve("application/wasm", wasm))
	}
	whole.HandleFunc("/deaf/holdfast-worker.js", stall)
	whole.HandleFunc("/deaf/holdfast-page.js", stall)
	whole.HandleFunc("/broken/holdfast-worker.js", serve("text/javascript", []byte("throw new Error('proxy error page')")))
	whole.HandleFunc("/broken/holdfast-page.js", serve("text/javascript", []byte("throw new Error('proxy error page')")))
	policy := func(old, replacement string) http.HandlerFunc {
		return blank(func(h http.Header) {
			h.Set("Content-Security-Policy", strings.Replace(h.Get("Content-Security-Policy"), old, replacement, 1))
		})
	}
	whole.HandleFunc("/no-worker", policy("worker-src 'self'", "worker-src 'none'"))
	whole.HandleFunc("/no-fetch", policy("connect-src 'self'", "connect-src 'none'"))
	whole.HandleFunc("/no-wasm", policy(" 'wasm-unsafe-eval'", ""))
	return whole
}

// troubles are mistakes of a user that adds Holdfast to a page. words are the parts of the message that say what to
// do.
var troubles = []struct {
	name, page, base string
	host             string // "" for both
	code             string
	words            string
	console          []string // the browser's own messages
}{
	{"wasm not found", "/blank", "/nowasm/", "", "load-failed", "/nowasm/holdfast.wasm.*404.*baseURL.*optimizeDeps", []string{"404"}},
	{"wasm is a page", "/blank", "/html/", "", "load-failed", "/html/holdfast.wasm.*baseURL.*optimizeDeps", nil},
	{"wasm cut short", "/blank", "/cut/", "", "load-failed", "holdfast.wasm.*whole file", nil},
	{"wasm may not be fetched", "/no-fetch", "/", "", "load-failed", "holdfast.wasm.*connect-src", []string{"connect-src", "Content Security Policy"}},
	{"wasm may not run", "/no-wasm", "/", "", "unsupported", "wasm-unsafe-eval", []string{"Content Security Policy", "wasm-unsafe-eval"}},
	{"worker may not run", "/no-worker", "/", "worker", "load-failed", "holdfast-worker.js.*worker-src.*baseURL.*optimizeDeps", []string{"worker-src"}},
	{"folder not found", "/blank", "/nowhere/", "", "load-failed", "/nowhere/holdfast-(host|page).js.*baseURL", []string{"404"}},
	{"worker not found", "/blank", "/noworker/", "worker", "load-failed", "/noworker/holdfast-worker.js.*baseURL.*optimizeDeps", []string{"404"}},
	{"script broken", "/blank", "/broken/", "", "load-failed", "proxy error page", nil},
}

// Each mistake rejects every call with its code and a message that says what to do. Nothing hangs, nothing is
// left behind, and every rejection is handled.
func TestTroubleOfLoading(t *testing.T) {
	t.Parallel()
	w := world{browser.Start(t, quick), browser.Serve(t, troubled(t))}
	for _, trouble := range troubles {
		for _, host := range []string{"worker", "page"} {
			if trouble.host != "" && trouble.host != host {
				continue
			}
			t.Run(trouble.name+"/"+host, func(t *testing.T) {
				tab := w.Open(t, w.URL(trouble.page))
				begin(tab, "")
				failures := browser.Get[[]event](tab, `const {createHoldfast} = await import('/holdfast.js')
					hf = createHoldfast({host: '`+host+`', baseURL: '`+trouble.base+`'})
					await Promise.all([failure(hf.acquireProjectLock()), failure(hf.ready),
					failure(hf.withProjectLock(() => {})), failure(hf.inspect())])`)
				for _, f := range append(failures, browser.Get[event](tab, "await failure(hf.acquireProjectLock())")) {
					assert.Equal(t, trouble.code, f["code"], "%v", f)
					assert.Equal(t, "ProjectLockError", f["name"])
					assert.Regexp(t, trouble.words, f["message"])
				}
				t.Log(failures[0]["message"])
				tab.MustEval("await hf.close()", nil)
				eventually(t, func() bool { return tab.Workers() == 0 }, "a worker is left")
				assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
				tab.Quiet(trouble.console...)
				tab.Close()
			})
		}
	}
}

// A wrong media type only makes the start slower.
func TestWasmOfAnotherType(t *testing.T) {
	t.Parallel()
	w := world{browser.Start(t, quick), browser.Serve(t, troubled(t))}
	eachHost(t, func(t *testing.T, host string) {
		for _, base := range []string{"/typed/", "/charset"} {
			tab := w.tab(t, "{host: '"+host+"', baseURL: '"+base+"'}")
			tab.MustEval("await (await hf.acquireProjectLock()).release(); await hf.close()", nil)
			tab.Quiet()
			tab.Spare()
		}
	})
}

// While the runtime does not load, the limits of each call hold, and close() ends everything.
func TestStalledLoading(t *testing.T) {
	w := world{browser.Start(t, quick), browser.Serve(t, troubled(t))}
	eachHost(t, func(t *testing.T, host string) {
		for _, base := range []string{"/stalled/", "/deaf/"} {
			tab := w.tab(t, "")
			tab.MustEval("await start({host: '"+host+"', baseURL: '"+base+"'})", nil)
			got := browser.Get[[]event](tab, `
				const stop = new AbortController()
				setTimeout(() => stop.abort(), 300)
				const forever = [failure(hf.acquireProjectLock()), failure(hf.acquireProjectLock({timeoutMs: 2 ** 31})), failure(hf.inspect()), failure(hf.ready)]
				await Promise.all([failure(hf.acquireProjectLock({timeoutMs: 300})), failure(hf.withProjectLock(() => {}, {timeoutMs: 300})),
					failure(hf.acquireProjectLock({signal: stop.signal})), failure(hf.acquireProjectLock({signal: AbortSignal.abort()}))])`)
			for i, code := range []string{"acquire-timeout", "acquire-timeout", "aborted", "aborted"} {
				assert.Equal(t, code, got[i]["code"], "%v", got[i])
				assert.Equal(t, code == "acquire-timeout", got[i]["retryable"])
				assert.Less(t, got[i].number("took"), browser.Prompt)
				if i < 2 { // the signal has a clock of its own
					assert.GreaterOrEqual(t, got[i].number("took"), 295.0)
				}
			}
			tab.MustEval("await hf.close()", nil)
			for _, f := range browser.Get[[]event](tab, "await Promise.all(forever)") {
				assert.Equal(t, "aborted", f["code"], "%v", f)
			}
			eventually(t, func() bool { return tab.Workers() == 0 }, "a worker is left")
			assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
			tab.Quiet()
			tab.Spare()
		}
	})
}
