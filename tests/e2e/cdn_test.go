package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// networked is a site whose pages may use the files of the package on a content delivery network, under another origin. The
// pages of /no-blob have a policy that forbids workers of another origin.
func networked(t *testing.T) (w world, network string) {
	t.Helper()
	files := pages(t, siteDir)
	server := browser.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Host, "localhost") {
			w.Header().Set("Access-Control-Allow-Origin", "*")
		}
		files.ServeHTTP(w, r)
	}))
	network = server.OtherURL("/")
	policy := func(workers string) http.HandlerFunc {
		return blank(func(h http.Header) {
			h.Set("Content-Security-Policy", strings.NewReplacer("script-src 'self'", "script-src 'self' "+network, "connect-src 'self'", "connect-src 'self' "+network,
				"worker-src 'self'", "worker-src "+workers).Replace(h.Get("Content-Security-Policy")))
		})
	}
	files.HandleFunc("/networked", policy("blob: "+network))
	files.HandleFunc("/no-blob", policy("'self' "+network))
	return world{browser.Start(t, quick), server}, network
}

// networkedTab opens a page, and there a Holdfast of a module with options. It does not wait for the runtime.
func networkedTab(t *testing.T, w world, page, module, options string) *browser.Tab {
	t.Helper()
	tab := w.Open(t, w.URL(page))
	tab.MustEval(strings.Replace(prelude, "/holdfast.js", module, 1), nil)
	tab.MustEval("const {createHoldfast} = await import('"+module+"'); hf = createHoldfast("+options+"); null", nil)
	return tab
}

// The files of the package may be of another origin than the page: all of them, or all but the module.
func TestFilesOfAnotherOrigin(t *testing.T) {
	t.Parallel()
	w, network := networked(t)
	for _, c := range []struct{ host, module, base string }{
		{"worker", network + "holdfast.js", ""},
		{"page", "/holdfast.js", fmt.Sprintf(", baseURL: %q", network)},
	} {
		t.Run(c.host, func(t *testing.T) {
			options := fmt.Sprintf("{host: %q, root: %[1]q%s}", c.host, c.base)
			tab := networkedTab(t, w, "/networked", c.module, options)
			assert.Equal(t, "web-lock", browser.Get[string](tab, "lease = await hf.acquireProjectLock(); lease.strategy"))
			tab.MustEval(`await lease.release()
				let saver = await hf.initAutoSave(() => 'text', {debounceMs: 50})
				saver.markDirty(); await saver.flushNow(); null`, nil)
			assert.Equal(t, "opfs", browser.Get[string](tab, "saver.state().storage"))
			tab.MustEval("hf.serve('sums', () => ({sum: (a, b) => a + b})); null", nil)
			next := networkedTab(t, w, "/networked", c.module, options)
			assert.Equal(t, 5, browser.Get[int](next, "await hf.serve('sums', () => ({})).call('sum', 2, 3)"))
			for _, tab := range []*browser.Tab{next, tab} {
				tab.MustEval("await hf.close(); null", nil)
				tab.Quiet()
				tab.Close()
			}
		})
	}
}

func TestPolicyForbidsWorkersOfAnotherOrigin(t *testing.T) {
	t.Parallel()
	w, network := networked(t)
	tab := networkedTab(t, w, "/no-blob", network+"holdfast.js", "{}")
	f := browser.Get[event](tab, "await failure(hf.ready)")
	assert.Equal(t, "load-failed", f["code"])
	assert.Regexp(t, "holdfast-worker.js beside "+network+"holdfast.wasm.*worker-src.*blob:", f["message"])
	t.Log(f["message"])
	tab.MustEval("await hf.close(); null", nil)
	eventually(t, func() bool { return tab.Workers() == 0 }, "a worker is left")
	tab.Quiet("worker-src")
}
