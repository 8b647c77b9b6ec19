package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
)

// beginsSlowly makes an AutoSave in a page whose runtime runs. Its preview reads files that do not arrive, so it begins a second later: when
// the test calls waited.
const beginsSlowly = `
	globalThis.cached = 1
	let shown = 'typed'
	await hf.acquireProjectLock({path: ['another document']})
	FileSystemDirectoryHandle.prototype.getDirectoryHandle = () => new Promise(() => {})
	const {setTimeout: real} = globalThis, due = []
	globalThis.setTimeout = (run, ms, ...more) => ms === 1000 ? (due.push(run), 0) : real(run, ms, ...more)
	globalThis.waited = () => {
		globalThis.setTimeout = real
		due.forEach(run => run())
	}
	globalThis.autosave = hf.createAutoSave(() => shown)
	autosave.addEventListener('autosave:preview', () => {})
	globalThis.first = failure(autosave.ready)
	while (due.length === 0) await new Promise(done => real(done, 5)) // its modules are here
	null`

// endsForAll expects that nobody holds the lock after the page has ended its AutoSave.
func endsForAll(t *testing.T, w world, ann *browser.Tab, host, root string) {
	t.Helper()
	ann.MustEval("waited(); await new Promise(done => setTimeout(done, 1500)); await failure(autosave.dispose()); null", nil)
	ben := w.tab(t, named(host, root, "Ben"))
	ben.MustEval(endings.Editing, nil)
	ben.MustEval("await edit(); null", nil)
	assert.False(t, browser.Get[bool](ben, "autosave.readOnly"))
	ben.MustEval("await hf.close(); null", nil)
}

// A page enters the back/forward cache while its AutoSave begins. As it returns, the AutoSave begins again: the attempt before has ended. Otherwise
// there would be two, and the page could not end the first one, which holds the lock.
func TestOneAutoSaveAfterItsPageWasCachedWhileItBegan(t *testing.T) {
	t.Parallel()
	w := open(t, whole)
	eachHost(t, func(t *testing.T, host string) {
		root := "begins in the cache " + host
		ann := w.tab(t, named(host, root, "Ann"))
		ann.MustEval(beginsSlowly, nil)
		ann.Navigate(w.URL("/blank?elsewhere"))
		if !back(t, ann) {
			return
		}
		assert.Equal(t, "lease-lost", browser.Get[event](ann, "await first")["code"])
		endsForAll(t, w, ann, host, root)
	})
}

// The worker of a page ends while its AutoSave begins. The AutoSave has failed, and does not begin in the next worker.
func TestAutoSaveFailsIfItsWorkerEndsWhileItBegins(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	root := "begins without a worker"
	ann := w.tab(t, named("worker", root, "Ann"))
	ann.MustEval(beginsSlowly, nil)
	ann.EndWorker("self.close()")
	assert.Equal(t, "runtime-crashed", browser.Get[event](ann, "await first")["code"])
	endsForAll(t, w, ann, "worker", root)
}
