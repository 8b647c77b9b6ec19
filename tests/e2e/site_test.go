// Package e2e tests the built package as pages use it: in several tabs of a real browser, under a strict content
// security policy.
package e2e

import (
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/static"
	"github.com/holdfast-dev/holdfast/tests/browser"
)

const (
	siteDir   = "../../web/site"
	faultsDir = "../../.cache/faults"
)

// site serves a built package and an empty page, all under the policy of the demo.
func site(t *testing.T, dir string) *browser.Server {
	t.Helper()
	return browser.Serve(t, pages(t, dir))
}

func pages(t *testing.T, dir string) *http.ServeMux {
	t.Helper()
	files := os.DirFS(dir)
	_, err := fs.Stat(files, "holdfast.wasm")
	require.NoError(t, err, "the package is not built; run make test-e2e")
	bundle, err := static.Handler(files)
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/", bundle)
	mux.HandleFunc("/blank", blank(nil))
	return mux
}

// blank answers with an empty page. header may change the headers of the site.
func blank(header func(http.Header)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		static.SecurityHeaders(w.Header())
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if header != nil {
			header(w.Header())
		}
		_, _ = w.Write([]byte("<!doctype html><title>blank</title><link rel=icon href='data:,'>"))
	}
}

// world is one browser at one site.
type world struct {
	*browser.Browser
	*browser.Server
}

// quick is the browser of most tests. whole is for tests of hidden, focused or cached pages, and of traps in Wasm.
var quick, whole = browser.Options{Shell: true}, browser.Options{}

func open(t *testing.T, options browser.Options) world {
	t.Helper()
	return world{browser.Start(t, options), site(t, siteDir)}
}

// prelude gives each tab the functions that the tests share. It records events unchanged, and leases and errors as
// plain objects.
const prelude = `
const {openHoldfast, ProjectLockError} = await import('/holdfast.js')
const now = () => performance.timeOrigin + performance.now()
const events = []
const plain = value => JSON.parse(JSON.stringify(value ?? null, (key, v) =>
  v instanceof Error ? {name: v.name, code: v.code, operation: v.operation, retryable: v.retryable, resource: v.resource, message: v.message} : v))
const uncaught = []
addEventListener('error', e => { uncaught.push(String(e.error?.message ?? e.message)); if (globalThis.expected) e.preventDefault() })
addEventListener('unhandledrejection', e => uncaught.push('rejection: ' + e.reason))
let hf, lease, result
const start = async options => {
  hf = await openHoldfast(options)
  hf.subscribe(event => events.push({...plain(event), seen: now()}))
  return hf
}
const types = () => events.map(e => e.type.slice(5))
const count = type => types().filter(t => t === type).length
// failure returns the error as a plain object, with the elapsed time, or the value if there is no error.
const failure = async promise => {
  const since = now()
  return promise.then(value => ({value: plain(value)}), error => ({...plain({error}).error, took: now() - since}))
}
const locks = async () => { const {held, pending} = await navigator.locks.query(); return {held: held.length, pending: pending.length} }
1`

// tab opens a tab with a Holdfast of these options, or without one if they are "".
func (w world) tab(t *testing.T, options string) *browser.Tab {
	t.Helper()
	tab := w.Open(t, w.URL("/blank"))
	if strings.Contains(t.Name(), "/") { // the next subtest can use it
		t.Cleanup(tab.Spare)
	}
	begin(tab, options)
	return tab
}

// begin prepares the tab's page after it was opened or reloaded.
func begin(tab *browser.Tab, options string) {
	tab.MustEval(prelude, nil)
	if options != "" {
		tab.MustEval("await start("+options+"); await hf.ready", nil)
	}
}

// at returns the options of a Holdfast: the host, and a project that no other test uses.
func at(host, root string) string {
	return fmt.Sprintf("{host: '%s', root: '%s', ownerName: 'Ann'}", host, root)
}

// eachHost runs a test with the runtime in a worker and in the page.
func eachHost(t *testing.T, test func(t *testing.T, host string)) {
	for _, host := range []string{"worker", "page"} {
		t.Run(host, func(t *testing.T) { test(t, host) })
	}
}

// eachHostAtOnce is eachHost for slow tests, with a browser for each host.
func eachHostAtOnce(t *testing.T, test func(t *testing.T, host string)) {
	atOnce(t, map[string]func(t *testing.T){
		"worker": func(t *testing.T) { test(t, "worker") },
		"page":   func(t *testing.T) { test(t, "page") },
	})
}

// atOnce runs the parts of a test that mostly waits, all at the same time. Subtests that call t.Parallel instead begin when
// every other test has begun.
func atOnce(t *testing.T, parts map[string]func(t *testing.T)) {
	var running sync.WaitGroup
	for name, part := range parts {
		running.Go(func() { t.Run(name, part) })
	}
	running.Wait()
}

// turns returns the settings in which the i-th variant of a test runs: all with -full, otherwise one, which the next
// variant does not have.
func turns(i int, settings ...string) []string {
	if *full {
		return settings
	}
	return settings[i%len(settings):][:1]
}

// clock is Go's clock in milliseconds, comparable with now() of a tab.
func clock() float64 { return float64(time.Now().UnixMicro()) / 1000 }

// free waits until no lock in the browser is held or requested.
func free(tab *browser.Tab) {
	tab.WaitFor("(await navigator.locks.query()).held.length + (await navigator.locks.query()).pending.length === 0", browser.Limit)
}

var full = flag.Bool("full", false, "as many rounds as it takes to be sure, not as many as there is time for")

// rounds returns how often a test repeats a case that rarely fails.
func rounds(t *testing.T, short, long int) int {
	t.Helper()
	if *full {
		return long
	}
	return short
}
