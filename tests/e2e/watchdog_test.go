package e2e

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// noticed returns the maximum time until the page notices that its worker is gone, in milliseconds: 5 s for a dead worker. A stuck one may
// wait for a busy disk first, for up to 10 s, and the machine may be busy.
func noticed(way string) float64 {
	if way == "ended" {
		return 5000
	}
	return 15_000
}

// stuckIn makes a call of the file storage never return. The worker sleeps meanwhile, so that it takes no processor time from other tests.
func stuckIn(call string) string {
	return "FileSystemSyncAccessHandle.prototype." + call + " = () => Atomics.wait(new Int32Array(new WebAssembly.Memory({initial: 1, maximum: 1, shared: true}).buffer), 0, 0); null"
}

// ways are the ways in which a worker stops answering.
var ways = map[string]string{
	"ended":          "self.close()",
	"stuck in write": stuckIn("write"),
	"stuck in flush": stuckIn("flush"),
	"stuck in read":  stuckIn("read"),
	"stuck in close": stuckIn("close"),
}

// A dead or stuck worker is replaced: every pending call settles, and the same Holdfast continues.
func TestDeadOrStuckWorkerIsReplaced(t *testing.T) {
	t.Parallel()
	w, parts := open(t, quick), map[string]func(t *testing.T){}
	for i, way := range slices.Sorted(maps.Keys(ways)) {
		if way == "stuck in flush" {
			continue // no step flushes the file of locks
		}
		for _, strategy := range turns(i, "web-lock", "file-lock") {
			parts[strategy+"/"+way] = func(t *testing.T) {
				options := fmt.Sprintf("{strategy: %q, root: %q}", strategy, strategy+way)
				tab, other := w.tab(t, options), w.tab(t, options)
				makesCallsPending(tab, other)
				tab.MustEval("events.length = 0; globalThis.begun = now(); null", nil)
				tab.EndWorker(ways[way])
				switch way {
				case "stuck in write":
					tab.MustEval("pending.push(failure(hf.acquireProjectLock({mode: 'shared'}))); null", nil)
				case "stuck in read", "stuck in close": // it may be granted before: the worker keeps the file open and knows what is in it
					tab.MustEval("hf.acquireProjectLock({mode: 'shared'}).catch(() => {}); null", nil)
				}
				tab.MustEval("Promise.all(pending).then(() => { globalThis.settled = true }); null", nil)
				tab.WaitFor("globalThis.settled", browser.Limit)
				for _, f := range browser.Get[[]event](tab, "await Promise.all(pending)") {
					assert.Equal(t, "runtime-crashed", f["code"], "%v", f)
				}
				entered := browser.Get[event](tab, "events.find(e => e.type === 'lock:readonly-entered')")
				assert.Equal(t, "runtime-crashed", entered["reason"])
				assert.Less(t, entered.number("seen")-browser.Get[float64](tab, "begun"), noticed(way))
				assert.Equal(t, "runtime-crashed", browser.Get[string](tab, "lease.signal.reason.code"))
				other.WaitFor("got", browser.Limit)
				other.MustEval("await lease.release()", nil)

				// The same object serves the next calls, with another worker.
				tab.MustEval("lease = await hf.acquireProjectLock(); await lease.release()", nil)
				assert.Equal(t, 1, browser.Get[int](tab, "count('readonly-entered')"))
				assert.Equal(t, 1, tab.Workers())
				tab.MustEval("await hf.close()", nil)
				other.MustEval("await hf.close()", nil)
				tab.Quiet()
				other.Quiet()
			}
		}
	}
	atOnce(t, parts)
}

// makesCallsPending begins calls of every kind in the tab. The other tab waits for its lease.
func makesCallsPending(tab, other *browser.Tab) {
	tab.MustEval(`
		globalThis.got = 0
		lease = await hf.acquireProjectLock({path: ['mine']})
		globalThis.pending = [
			hf.locks.request('held', () => new Promise(() => {})),
			hf.acquireProjectLock({path: ['mine'], `+patient+`}),
			hf.withProjectLock(() => new Promise(() => {}), {path: ['other']}),
		].map(failure)
		null`, nil)
	tab.WaitFor("types().includes('waiting')", browser.Limit)
	other.MustEval("globalThis.got = 0; result = hf.acquireProjectLock({path: ['mine'], "+patient+"}).then(l => { lease = l; got = now() }); null", nil)
	other.WaitFor("types().includes('waiting')", browser.Limit)
}

// A worker that computes, a blocked page and a suspended process are not dead, however long that lasts.
func TestBusyWorkerIsNotReplaced(t *testing.T) {
	t.Parallel()
	w := open(t, whole)
	block := "const end = Date.now() + 8000; while (Date.now() < end);"
	for name, busy := range map[string]func(tab *browser.Tab){
		"the worker computes":      func(tab *browser.Tab) { tab.WorkerEval("setTimeout(() => { "+block+" }); null", nil) },
		"the page is blocked":      func(tab *browser.Tab) { tab.MustEval("{ "+block+" }; null", nil) },
		"the process stands still": func(tab *browser.Tab) { tab.Suspend(); wait8s(); tab.Continue() },
		"the page is frozen":       func(tab *browser.Tab) { tab.Freeze(); wait8s(); tab.Resume(); tab.Show() },
		"a file call takes seconds": func(tab *browser.Tab) {
			tab.WorkerEval(`const {prototype} = FileSystemSyncAccessHandle, {write} = prototype
				prototype.write = function (...what) {
					prototype.write = write
					const end = Date.now() + 6000
					while (Date.now() < end);
					return write.apply(this, what)
				}; null`, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			tab := w.tab(t, fmt.Sprintf("{root: %q}", name))
			tab.MustEval("lease = await hf.acquireProjectLock({ttlMs: 600000, heartbeatIntervalMs: 500}); null", nil)
			tab.WaitFor("count('renewed') > 0", browser.Limit)
			busy(tab)
			before := browser.Get[int](tab, "count('renewed')")
			tab.WaitFor(fmt.Sprintf("count('renewed') > %d", before+1), browser.Limit)
			assert.False(t, browser.Get[bool](tab, "lease.signal.aborted"))
			assert.NotContains(t, browser.Get[[]string](tab, "types()"), "readonly-entered")
			tab.MustEval("await lease.release(); await hf.close()", nil)
		})
	}
}

// A worker that says nothing after its last file call is at rest, not stuck.
func TestRestingWorkerIsNotReplaced(t *testing.T) {
	t.Parallel()
	tab := open(t, whole).tab(t, "{root: 'rests'}")
	tab.MustEval("lease = await hf.acquireProjectLock({ttlMs: 600000, heartbeatIntervalMs: 60000}); null", nil)
	tab.WorkerEval(`(async () => {
		const file = await (await navigator.storage.getDirectory()).getFileHandle('rests', {create: true})
		const handle = await file.createSyncAccessHandle()
		setTimeout(() => handle.close())
	})(); null`, nil)
	wait8s()
	assert.False(t, browser.Get[bool](tab, "lease.signal.aborted"))
	assert.NotContains(t, browser.Get[[]string](tab, "types()"), "readonly-entered")
	tab.MustEval("await lease.release(); await hf.close()", nil)
}

func wait8s() { <-time.After(8 * time.Second) }

// The watchdog gives up a worker that dies repeatedly.
func TestWorkerThatDiesAgainAndAgainIsGivenUp(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := w.tab(t, "{root: 'again and again'}")
	for i := range 4 {
		tab.MustEval("lease = await hf.acquireProjectLock({mode: 'shared'}); null", nil)
		tab.EndWorker("self.close()")
		tab.WaitFor(fmt.Sprintf("count('readonly-entered') === %d", i+1), browser.Limit)
	}
	failed := browser.Get[event](tab, "await failure(hf.acquireProjectLock())")
	assert.Equal(t, "runtime-crashed", failed["code"])
	assert.Contains(t, failed["message"], "openHoldfast")
	tab.MustEval("await hf.close(); await start({root: 'again and again'}); await (await hf.acquireProjectLock()).release(); await hf.close()", nil)
	tab.Quiet()
}

// helperFaults are the ways in which the worker with the files of a page stops answering.
var helperFaults = map[string]string{"end": ways["ended"], "write": ways["stuck in write"], "flush": ways["stuck in flush"]}

// In a page, the worker that has its files open is replaced when it is dead or stuck. Nothing hangs, and typed text
// is saved.
func TestDeadOrStuckHelperIsReplaced(t *testing.T) {
	t.Parallel()
	w, parts := open(t, quick), map[string]func(t *testing.T){}
	for i, fault := range []string{"end", "write", "flush"} {
		for _, strategy := range turns(i, "web-lock", "file-lock") {
			parts[strategy+"/"+fault] = func(t *testing.T) {
				tab := w.editor(t, fmt.Sprintf("{strategy: %q, host: 'page', root: %q}", strategy, strategy+fault), "{debounceMs: 20}")
				tab.MustEval("type('before'); await autosave.flushNow()", nil)
				tab.EachWorkerEval(helperFaults[fault])
				tab.MustEval("globalThis.begun = now(); type(', after'); null", nil)
				tab.WaitFor("heard('saved').some(e => e.bytes === 13)", 3*browser.Limit)
				t.Logf("saved %.0f ms later", browser.Get[float64](tab, "now() - begun"))
				assert.Equal(t, "before, after", browser.Get[string](tab, "current()"))
				tab.MustEval("await hf.close()", nil)
				assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
			}
		}
	}
	atOnce(t, parts)
}

// AutoSave restarts on its own after its worker was replaced: text that was typed before and meanwhile is saved, and
// nobody else gets the lock.
func TestAutoSaveOutlivesItsWorker(t *testing.T) {
	t.Parallel()
	w, parts := open(t, quick), map[string]func(t *testing.T){}
	for i, way := range slices.Sorted(maps.Keys(ways)) {
		for _, strategy := range turns(i, "file-lock", "web-lock") {
			parts[strategy+"/"+way] = func(t *testing.T) {
				tab := w.editor(t, fmt.Sprintf("{strategy: %q, root: %q}", strategy, "goes on "+strategy+way), "{debounceMs: 20}")
				tab.MustEval("type('one'); await autosave.flushNow(); told.length = 0; null", nil)
				tab.EndWorker(ways[way])
				tab.MustEval("globalThis.begun = now(); type(' two'); result = failure(autosave.flushNow()); null", nil)
				tab.WaitFor("heard('readonly').length > 0", browser.Limit)
				assert.Equal(t, "runtime-crashed", browser.Get[string](tab, "heard('readonly')[0].reason"))
				assert.Less(t, browser.Get[float64](tab, "heard('readonly')[0].seen - begun"), noticed(way))
				if way == "stuck in write" || way == "stuck in flush" { // otherwise it may have been saved before
					assert.Equal(t, "one two", browser.Get[string](tab, "heard('readonly')[0].unsaved"))
				}
				tab.WaitFor("!autosave.readOnly && heard('editable').length === 1", browser.Limit)
				tab.MustEval("await result; null", nil)
				assert.Equal(t, "one two", browser.Get[string](tab, "text"))
				tab.MustEval("type(' three'); await autosave.flushNow()", nil)
				assert.Equal(t, "one two three", browser.Get[string](tab, "current()"))
				assert.Equal(t, 1, browser.Get[int](tab, "heard('readonly').filter(e => e.reason === 'runtime-crashed').length"))
				assert.Equal(t, 0, browser.Get[int](tab, "(await autosave.drafts()).length"))
				tab.MustEval("await autosave.dispose(); await hf.close()", nil)
				assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
			}
		}
	}
	atOnce(t, parts)
}

// A worker computes forever while a call waits for it, and the page goes on calling it. Its clock runs at twenty times the speed.
func TestEndlessWorkerIsReplacedWhileThePageCalls(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := w.tab(t, "{root: 'endless'}")
	tab.MustEval(`
		const [ms, every] = [performance.now.bind(performance), setInterval]
		performance.now = () => ms() * 20
		setInterval = (f, pause) => every(f, pause / 20)
		null`, nil)
	tab.WorkerEval("setTimeout(() => Atomics.wait(new Int32Array(new WebAssembly.Memory({initial: 1, maximum: 1, shared: true}).buffer), 0, 0)); null", nil)
	tab.MustEval(`
		result = failure(hf.inspect()).then(failed => { globalThis.failed = failed })
		globalThis.calls = every(() => hf.inspect().catch(() => {}), 50)
		null`, nil)
	tab.WaitFor("globalThis.failed", browser.Limit)
	assert.Equal(t, "runtime-crashed", browser.Get[string](tab, "failed.code"))
	tab.MustEval("clearInterval(calls); await hf.inspect(); await hf.close()", nil)
	tab.Quiet()
}
