// Package e2e tries the built package as pages use it: in several tabs of a real
// browser, under a strict content security policy.
package e2e

import (
	"io/fs"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/static"
	"github.com/holdfast-dev/holdfast/tests/browser"
)

// site serves a built package and an empty page, all under the policy of the demo.
func site(t *testing.T, dir string) *browser.Server {
	t.Helper()
	files := os.DirFS(dir)
	_, err := fs.Stat(files, "holdfast.wasm")
	require.NoError(t, err, "the package is not built; run make build")
	bundle, err := static.Handler(files)
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/", bundle)
	mux.HandleFunc("/blank", func(w http.ResponseWriter, _ *http.Request) {
		static.SecurityHeaders(w.Header())
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<!doctype html><title>blank</title><link rel=icon href='data:,'>"))
	})
	return browser.Serve(t, mux)
}

const (
	siteDir   = "../../web/site"
	faultsDir = "../../.cache/faults"
)

// world is one browser at one site.
type world struct {
	*browser.Browser
	*browser.Server
}

func open(t *testing.T, options browser.Options) world {
	t.Helper()
	return world{browser.Start(t, options), site(t, siteDir)}
}

// prelude gives each tab what the tests say again and again. The events are noted as
// they came, leases and errors as plain objects.
const prelude = `
const {openHoldfast, ProjectLockError} = await import('/holdfast.js')
const now = () => performance.timeOrigin + performance.now()
const events = []
const plain = value => JSON.parse(JSON.stringify(value, (key, v) =>
  v instanceof Error ? {name: v.name, code: v.code, operation: v.operation, retryable: v.retryable, resource: v.resource, message: v.message} : v))
let hf
const start = async options => {
  hf = await openHoldfast(options)
  hf.subscribe(event => events.push({...plain(event), seen: now()}))
  return hf
}
const types = () => events.map(e => e.type.slice(5))
const failure = promise => promise.then(value => ({value: plain(value)}), error => plain({error}).error)
`

// tab opens a tab with a Holdfast of these options.
func (w world) tab(t *testing.T, options string) *browser.Tab {
	t.Helper()
	tab := w.Open(t, w.URL("/blank"))
	tab.MustEval(prelude, nil)
	if options != "" {
		tab.MustEval("await start("+options+"); await hf.ready", nil)
	}
	return tab
}
