package e2e

import (
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// network serves the site. It counts the requests for each path, and answers the first one for a path with its
// fault.
type network struct {
	files http.Handler

	mu     sync.Mutex
	faults map[string]http.HandlerFunc
	counts map[string]int
}

func (n *network) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	n.counts[r.URL.Path]++
	fault := n.faults[r.URL.Path]
	delete(n.faults, r.URL.Path)
	n.mu.Unlock()
	if fault != nil {
		fault(w, r)
		return
	}
	n.files.ServeHTTP(w, r)
}

func (n *network) fail(path string, fault http.HandlerFunc) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults[path] = fault
}

// hold lets requests for a path wait until the gate is closed.
func (n *network) hold(path string) (gate chan struct{}) {
	gate = make(chan struct{})
	n.fail(path, func(w http.ResponseWriter, r *http.Request) {
		<-gate
		n.files.ServeHTTP(w, r)
	})
	return gate
}

// count returns how often a path was requested since the last call, and forgets that.
func (n *network) count(path string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	defer delete(n.counts, path)
	return n.counts[path]
}

func troubledNetwork(t *testing.T) (*network, world) {
	t.Helper()
	return troubledNetworkOf(t, quick)
}

func troubledNetworkOf(t *testing.T, options browser.Options) (*network, world) {
	t.Helper()
	n := &network{files: pages(t, siteDir), faults: map[string]http.HandlerFunc{}, counts: map[string]int{}}
	return n, world{browser.Start(t, options), browser.Serve(t, n)}
}

// half serves the first half of a file. Either the connection ends there, or the file does, and the browser keeps
// that half in its cache.
func half(t *testing.T, name, kind string, whole bool) http.HandlerFunc {
	t.Helper()
	data, err := os.ReadFile(siteDir + "/" + name)
	require.NoError(t, err)
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		if whole {
			w.Header().Set("Cache-Control", "max-age=3600")
			_, _ = w.Write(data[:len(data)/2])
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data[:len(data)/2])
		panic(http.ErrAbortHandler) // ends the connection
	}
}

func stall(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// A download that fails rejects what waits for it with "load-failed". The next call of the same Holdfast loads again
// and succeeds. Locks of the browser, which need no download, are not touched.
func TestLoadingAgain(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	const wasm, js = "application/wasm", "text/javascript"
	for _, c := range []struct {
		name, path, host string // host "" for both
		fault            http.HandlerFunc
	}{
		{"wasm not found", "/holdfast.wasm", "", http.NotFound},
		{"wasm cut off", "/holdfast.wasm", "", half(t, "holdfast.wasm", wasm, false)},
		{"half a wasm in the cache", "/holdfast.wasm", "", half(t, "holdfast.wasm", wasm, true)},
		{"half a wasm of another type in the cache", "/holdfast.wasm", "", half(t, "holdfast.wasm", "application/octet-stream", true)},
		{"wasm stalled", "/holdfast.wasm", "", stall},
		{"worker not found", "/holdfast-worker.js", "worker", http.NotFound},
		{"worker cut off", "/holdfast-worker.js", "worker", half(t, "holdfast-worker.js", js, false)},
		{"link not found", "/holdfast-host.js", "worker", http.NotFound},
		{"page host not found", "/holdfast-page.js", "page", http.NotFound},
	} {
		for _, host := range []string{"worker", "page"} {
			if c.host != "" && c.host != host {
				continue
			}
			t.Run(c.name+"/"+host, func(t *testing.T) {
				n.fail(c.path, c.fault)
				tab := w.Open(t, w.URL("/blank"))
				callWhileLoading(tab, host)
				failures := browser.Get[[]event](tab, "await failures")
				for _, f := range failures {
					assert.Equal(t, "load-failed", f["code"], "%v", f)
					assert.Equal(t, true, f["retryable"], "%v", f)
				}
				t.Log(failures[0]["message"])
				tab.MustEval("globalThis.setTimeout = real; await (await hf.acquireProjectLock()).release(); await hf.ready", nil)
				assert.True(t, browser.Get[bool](tab, "held"))
				assert.Equal(t, map[string]int{"worker": 1, "page": 2}[host], tab.Workers(), "a page has one for timers and one for files")
				tab.MustEval("await hf.close(); null", nil)
				eventually(t, func() bool { return tab.Workers() == 0 && !browser.Get[bool](tab, "held") }, "something is left")
				assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
				tab.Quiet("404", "ERR_")
				tab.Close()
			})
		}
	}
}

// callWhileLoading makes three calls that need the download, and a request of a lock of the browser.
func callWhileLoading(tab *browser.Tab, host string) {
	begin(tab, "")
	tab.MustEval(`
		const real = setTimeout
		globalThis.setTimeout = (run, ms, ...args) => real(run, ms === 30_000 ? 1000 : ms, ...args) // the limit of a download
		const {createHoldfast} = await import('/holdfast.js')
		hf = createHoldfast({host: '`+host+`'})
		const failures = Promise.all([failure(hf.acquireProjectLock()), failure(hf.inspect()), failure(hf.ready)])
		let held = true
		hf.locks.request('browser', () => new Promise(() => {})).catch(() => { held = false })
		null`, nil)
}

// A worker's script that does not arrive blocks the next request for it for 20 s: Chromium waits for its cache. The
// second attempt may take longer than that.
func TestLoadingAgainAfterStalledWorker(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	n.fail("/holdfast-worker.js", stall)
	tab := w.tab(t, "")
	tab.MustEval(`
		const real = setTimeout
		globalThis.setTimeout = (run, ms, ...args) => real(run, ms === 30_000 ? 1000 : ms, ...args)
		await start({})
		result = await failure(hf.inspect())
		hf.acquireProjectLock().then(lease => { result = lease.strategy })
		null`, nil)
	assert.Equal(t, "load-failed", browser.Get[event](tab, "result")["code"])
	tab.WaitFor("result === 'web-lock'", 3*browser.Limit)
	tab.MustEval("await hf.close()", nil)
	tab.Quiet()
}

// However often a download hangs, each attempt is given up after two minutes at the latest.
func TestHangingDownloadIsGivenUp(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	files := n.files
	n.files = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/holdfast.wasm" {
			stall(w, r)
			return
		}
		files.ServeHTTP(w, r)
	})
	tab := w.Open(t, w.URL("/blank"))
	begin(tab, "")
	tab.MustEval(`
		const real = setTimeout, limits = new Set()
		globalThis.setTimeout = (run, ms, ...args) => {
			if (ms < 30_000 || ms > 1e9) return real(run, ms, ...args) // 2e9 is no limit
			limits.add(ms)
			return real(run, ms > 30_000 ? 50 : 2000, ...args)
		}
		const {createHoldfast} = await import('/holdfast.js')
		hf = createHoldfast({host: 'page'})
		for (let i = 0; i < 5; i++) result = await failure(hf.inspect())
		null`, nil)
	assert.Equal(t, "load-failed", browser.Get[event](tab, "result")["code"])
	assert.Equal(t, []int{30_000, 120_000}, browser.Get[[]int](tab, "[...limits]"))
	tab.MustEval("await hf.close()", nil)
	tab.Quiet()
}

// The rest of a download arrives while the page is frozen. When the page goes on, the runtime loads.
func TestDownloadEndsWhileThePageIsFrozen(t *testing.T) {
	t.Parallel()
	n, w := troubledNetworkOf(t, whole)
	data, err := os.ReadFile(siteDir + "/holdfast.wasm")
	require.NoError(t, err)
	eachHost(t, func(t *testing.T, host string) {
		begun, rest, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
		n.fail("/holdfast.wasm", func(w http.ResponseWriter, _ *http.Request) {
			defer close(ended)
			w.Header().Set("Content-Type", "application/wasm")
			w.Header().Set("Content-Length", fmt.Sprint(len(data)))
			_, _ = w.Write(data[:len(data)/2])
			_ = http.NewResponseController(w).Flush()
			close(begun)
			<-rest
			_, _ = w.Write(data[len(data)/2:])
		})
		tab := w.tab(t, "")
		tab.MustEval("const {createHoldfast} = await import('/holdfast.js'); hf = createHoldfast("+at(host, "frozen download "+host)+"); hf.ready.then(() => { result = 'ready' }, ({code}) => { result = code }); null", nil)
		<-begun
		tab.Freeze()
		close(rest)
		<-ended
		tab.Resume()
		tab.WaitFor("result", browser.Limit)
		assert.Equal(t, "ready", browser.Get[string](tab, "result"))
		tab.MustEval("await hf.close()", nil)
		tab.Quiet()
	})
}

// An AutoSave begins by itself when the download succeeds, and saves what was typed meanwhile.
func TestAutoSaveBeginsAfterFailedDownload(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	for i, end := range []struct{ name, next string }{{"alone", ""}, {"flushed", "await made.flushNow(); null"}, {"disposed", "await made.dispose(); null"}, {"closed", "await hf.close(); null"}} {
		for p, path := range []string{"/holdfast.wasm", "/holdfast-autosave.js"} {
			for _, host := range turns(i+p, "worker", "page") {
				root := fmt.Sprintf("again %s %s %s", host, path[1:], end.name)
				n.fail(path, http.NotFound)
				n.count(path)
				tab := w.Open(t, w.URL("/blank"))
				begin(tab, "")
				tab.MustEval(handles, nil)
				tab.MustEval("hf = createHoldfast("+at(host, root)+"); const made = create(); text = 'typed'; made.markDirty(); result = await failure(made.ready)", nil)
				if path == "/holdfast-autosave.js" { // the Wasm may be there at the second attempt, which begins at once
					assert.Equal(t, "load-failed", browser.Get[event](tab, "result")["code"])
				}
				if end.next == "" {
					tab.WaitFor("heard.some(({type}) => type === 'saved')", browser.Limit)
					tab.MustEval("await made.ready", nil)
				} else {
					tab.MustEval(end.next, nil)
				}
				tab.MustEval("await hf.close(); null", nil)
				assert.Equal(t, 2, n.count(path))
				assert.Equal(t, []any{"typed", 0.0}, browser.Get[[]any](tab, "await saved('"+root+"')"))
				tab.Quiet("404")
				tab.Close()
			}
		}
	}
}

// A page may name the Wasm and the worker one by one. Then it fetches them from there alone.
func TestWasmAndWorkerAreFetchedFromTheirOwnURLs(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	files := n.files
	names := map[string]string{"/assets/hf.3f2a.wasm": "/holdfast.wasm", "/assets/w.91bc.js": "/holdfast-worker.js"}
	n.files = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, ok := names[r.URL.Path]; ok {
			r.URL.Path = name
		}
		files.ServeHTTP(w, r)
	})
	eachHost(t, func(t *testing.T, host string) {
		tab := w.tab(t, "")
		tab.MustEval(`await start({host: '`+host+`', wasmURL: '/assets/hf.3f2a.wasm', workerURL: new URL('/assets/w.91bc.js', location)})
			await (await hf.acquireProjectLock()).release(); await hf.close()`, nil)
		workers := map[string]int{"worker": 1, "page": 0}[host]
		assert.Equal(t, []int{1, workers, 0, 0}, []int{n.count("/assets/hf.3f2a.wasm"), n.count("/assets/w.91bc.js"), n.count("/holdfast.wasm"), n.count("/holdfast-worker.js")})
		for _, option := range []string{"wasmURL", "workerURL"} {
			for _, value := range []string{"''", "7", "null", "{}", "'http://['"} {
				f := browser.Get[event](tab, "await failure(openHoldfast({"+option+": "+value+"}))")
				assert.Equal(t, "invalid-argument", f["code"], "%s: %s", option, value)
				assert.Contains(t, f["message"], option)
			}
		}
		tab.Quiet()
	})
}

// The browser fetches preloaded files once, and the Holdfast that is opened later uses them.
func TestPreload(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	fetched := func() []int {
		return []int{n.count("/holdfast.wasm"), n.count("/holdfast-worker.js"), n.count("/holdfast-host.js"), n.count("/holdfast-page.js")}
	}
	eachHost(t, func(t *testing.T, host string) {
		tab := w.tab(t, "")
		tab.MustEval("const {preloadHoldfast} = await import('/holdfast.js')", nil)
		paths := map[string][]string{"worker": {"/holdfast.wasm", "/holdfast-worker.js"}, "page": {"/holdfast.wasm"}}[host]
		for _, path := range paths {
			n.fail(path, http.NotFound)
			f := browser.Get[event](tab, "await failure(preloadHoldfast({host: '"+host+"'}))")
			assert.Equal(t, "load-failed", f["code"])
			eventually(t, func() bool { return tab.Workers() == 0 }, "a worker is left")
		}
		fetched()
		tab.MustEval("await Promise.all([preloadHoldfast({host: '"+host+"'}), preloadHoldfast({host: '"+host+"'})]); await preloadHoldfast({host: '"+host+"'})", nil)
		whole := map[string][]int{"worker": {1, 1, 0, 0}, "page": {1, 0, 0, 0}}[host] // the document has the modules already
		assert.Equal(t, whole, fetched())
		if host == "worker" { // in a page, the helper may have started already
			assert.Equal(t, 1, tab.Workers())
		}
		tab.MustEval("await start({host: '"+host+"'}); await (await hf.acquireProjectLock()).release()", nil)
		assert.Equal(t, []int{0, 0, 0, 0}, fetched())
		if host == "worker" {
			assert.Equal(t, 1, tab.Workers(), "the worker that was preloaded is used")
		}
		tab.MustEval("await hf.close()", nil)
		eventually(t, func() bool { return tab.Workers() == 0 }, "a worker is left")
		f := browser.Get[event](tab, "await failure(preloadHoldfast({host: 'nowhere'}))")
		assert.Equal(t, "invalid-argument", f["code"])
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
		tab.Quiet("404")
	})
}

// A save that fails because the download failed leaves nothing behind: what is typed afterwards is saved.
func TestTextTypedAfterFailedFlushIsSaved(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		root := "typed after a flush " + host
		n.fail("/holdfast-autosave.js", http.NotFound)
		tab := w.Open(t, w.URL("/blank"))
		begin(tab, "")
		tab.MustEval(handles, nil)
		tab.MustEval("hf = createHoldfast("+at(host, root)+"); const made = create(); text = 'one'; result = await failure(made.flushNow())", nil)
		assert.Equal(t, "load-failed", browser.Get[event](tab, "result")["code"])
		tab.MustEval("text = 'one two'; made.markDirty(); null", nil)
		tab.WaitFor("heard.some(({type}) => type === 'saved')", browser.Limit)
		assert.Equal(t, []any{"one two", 0.0}, browser.Get[[]any](tab, "await saved('"+root+"')"))
		tab.MustEval("await hf.close(); null", nil)
		tab.Quiet("404")
		tab.Close()
	})
}

// An AutoSave that initAutoSave did not return never begins by itself: the next one edits.
func TestFailedInitLeavesNothing(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		n.fail("/holdfast-autosave.js", http.NotFound)
		tab := w.Open(t, w.URL("/blank"))
		begin(tab, "")
		tab.MustEval(`
			const real = setTimeout
			globalThis.setTimeout = (run, ms, ...args) => real(run, ms === 1000 ? 0 : ms, ...args) // the next attempt of an AutoSave
			await start(`+named(host, "init again "+host, "Ann")+`)
			result = await failure(hf.initAutoSave(() => 'first'))
			await hf.ready
			await new Promise(done => real(done, 500))
			globalThis.second = await hf.initAutoSave(() => 'second')
			null`, nil)
		assert.Equal(t, "load-failed", browser.Get[event](tab, "result")["code"])
		assert.False(t, browser.Get[bool](tab, "second.readOnly"))
		tab.MustEval("await second.dispose(); null", nil)
		assert.Equal(t, 0, browser.Get[int](tab, "(await hf.inspect()).held.length"))
		quiet(t, tab)
	})
}
