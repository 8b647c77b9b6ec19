package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// The worker has died, and its successor does not arrive. A page that gives up its wish to edit learns of that at once.
func TestRequestEditIsAbortedWhileTheRuntimeBeginsAnew(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	ann := w.editor(t, named("worker", "edit aborted", "Ann"), "")
	ann.MustEval("globalThis.Worker = class extends EventTarget { postMessage() {} terminate() {} }; null", nil)
	ann.EndWorker("self.close()")
	ann.MustEval("text = 'typed'; autosave.markDirty(); autosave.flushNow().catch(() => {}); null", nil)
	ann.WaitFor("autosave.state().lastError?.code === 'runtime-crashed'", browser.Limit)
	ann.MustEval(`
		const stop = new AbortController(), late = new Promise(done => setTimeout(done, 5000, {code: 'late'}))
		globalThis.outcome = Promise.race([failure(autosave.requestEdit({signal: stop.signal})), late])
		await Promise.resolve()
		stop.abort()
		null`, nil)
	assert.Equal(t, "aborted", browser.Get[event](ann, "await outcome")["code"])
}

// The worker has died, and its successor could not be loaded. The next call loads another one, and waits until the AutoSave has begun again.
func TestFlushBetweenTwoAttemptsToBeginAnew(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	ann := w.editor(t, named("worker", "two attempts", "Ann"), "")
	ann.MustEval(`
		globalThis.Real = Worker
		globalThis.Worker = class extends EventTarget {
			constructor() {
				super()
				setTimeout(() => this.onerror(new ErrorEvent('error')))
			}
			postMessage() {}
			terminate() {}
		}
		const {setTimeout: real} = globalThis
		globalThis.pauses = 0
		globalThis.setTimeout = (run, ms, ...more) => ms === 5000 ? ++pauses : real(run, ms, ...more)
		null`, nil)
	ann.EndWorker("self.close()")
	ann.MustEval("text = 'typed'; autosave.markDirty(); autosave.flushNow().catch(() => {}); null", nil)
	ann.WaitFor("pauses && autosave.state().lastError?.code === 'load-failed'", browser.Limit)
	ann.MustEval("globalThis.Worker = Real; await autosave.flushNow(); null", nil)
	assert.Equal(t, "typed", browser.Get[string](ann, "await current()"))
}

// A page saves as it enters the back/forward cache. It asks for no lock until it returns.
func TestNoLockForAFlushOfACachedPage(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := w.gatedTab(t, named("worker", "flush of a cached page", "Ann"))
	tab.MustEval("addEventListener('pagehide', () => autosave.flushNow().then(() => { result = 'saved' })); null", nil)
	tab.MustEval(`
		const real = navigator.locks.request
		globalThis.asked = 0
		navigator.locks.request = (...asked) => {
			globalThis.asked++
			return real.apply(navigator.locks, asked)
		}
		null`, nil)
	tab.MustEval(asHidden, nil)
	tab.WaitFor("(await locks()).held === 0", browser.Limit)
	tab.MustEval("await new Promise(done => requestIdleCallback(done)); null", nil)
	assert.Zero(t, browser.Get[int](tab, "asked"))
	tab.MustEval(asShown, nil)
	tab.MustEval("arrive(); null", nil)
	tab.WaitFor("result === 'saved'", browser.Limit)
	quiet(t, tab)
}

// A page returns from the cache, and the file storage answers nothing for ten seconds. Go calls it unsupported, but it may answer later.
func TestReturnToSilentStorage(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := w.earlyTab(t, named("worker", "return to silence", "Ann"))
	tab.MustEval(`
		edits()
		globalThis.refusals = 1
		globalThis.refused = false
		null`, nil)
	tab.WaitFor("!autosave.readOnly && autosave.lease", browser.Limit)
	tab.MustEval("type('typed'); await autosave.flushNow(); null", nil)
	tab.MustEval(`
		const {postMessage} = Worker.prototype
		Worker.prototype.postMessage = function (message, ...more) {
			if (message.method !== 'autosave' || refusals-- <= 0) return postMessage.call(this, message, ...more)
			setTimeout(() => { refused = true; this.onmessage({data: {kind: 'error', id: message.id, reason: {code: 'unsupported', operation: 'acquire', retryable: false, message: 'planted'}}}) })
		}
		null`, nil)
	tab.MustEval(asHidden, nil)
	tab.MustEval(asShown, nil)
	tab.WaitFor("refused", browser.Limit)
	if err := tab.Wait("!autosave.readOnly && autosave.lease", browser.Limit/4); err != nil {
		t.Errorf("the page is read-only for good: %v", err)
	}
	tab.MustEval("type(' on'); await autosave.flushNow(); null", nil)
	assert.Equal(t, "typed on", browser.Get[string](tab, "await current()"))
	quiet(t, tab)
}
