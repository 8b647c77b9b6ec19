package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// lasting makes a signal that lives as long as the page, and counts the listeners that are left on it.
const lasting = `
const lasting = (end = new AbortController()) => {
	const {signal} = end, left = []
	signal.addEventListener = (type, listener, options) => {
		left.push([listener, Object(options)])
		AbortSignal.prototype.addEventListener.call(signal, type, listener, options)
	}
	signal.removeEventListener = (type, listener, options) => {
		const i = left.findIndex(([one]) => one === listener)
		if (i >= 0) left.splice(i, 1)
		AbortSignal.prototype.removeEventListener.call(signal, type, listener, options)
	}
	signal.left = () => left.filter(([, options]) => !options.signal?.aborted).length
	return signal
}
const {createHoldfast} = await import('/holdfast.js')
null`

// A signal that lives as long as the page keeps no listener of a call that has ended, whatever the call was.
func TestLastingSignalKeepsNoListener(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		for name, call := range map[string]string{
			"acquire":     "await hf.releaseProjectLock(await hf.acquireProjectLock({signal}))",
			"loading":     "const other = createHoldfast({root: 'loading', host: '" + host + "'}); await other.releaseProjectLock(await other.acquireProjectLock({signal})); await other.close()",
			"with":        "await hf.withProjectLock(() => 1, {signal})",
			"refused":     "await hf.withProjectLock(() => hf.acquireProjectLock({ifAvailable: true, signal}).catch(() => 0))",
			"lock":        "await hf.locks.request('name', {signal}, () => 1)",
			"AutoSave":    "const made = await hf.initAutoSave(() => '', {signal}); await made.dispose()",
			"its lock":    "const made = await hf.initAutoSave(() => '', {lock: {signal}}); await made.dispose()",
			"requestEdit": "const made = await hf.initAutoSave(() => ''); await made.requestEdit({signal}); await made.dispose()",
			"once":        "const made = await hf.initAutoSave(() => ''); await new Promise(done => made.addEventListener('autosave:phase', done, {once: true, signal})); await made.dispose()",
			"removed":     "const made = await hf.initAutoSave(() => ''), one = () => {}; made.addEventListener('autosave:phase', one, {signal}); made.removeEventListener('autosave:phase', one); await made.dispose()",
			"holdfast":    "const other = createHoldfast({root: 'other', signal}); await other.ready; await other.close()",
		} {
			t.Run(name, func(t *testing.T) {
				tab := w.tab(t, at(host, "signals-"+host+name))
				tab.MustEval(lasting, nil)
				tab.MustEval("const signal = lasting(); "+call, nil)
				assert.Zero(t, browser.Get[int](tab, "signal.left()"))
			})
		}
	})
}

// A signal may be of a frame, whose classes are others. A page gives it to a lease, to an AutoSave and to a Holdfast, and aborts it.
func TestSignalOfAFrame(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	for name, c := range map[string]struct{ call, code string }{
		"acquire":  {"setTimeout(abort, 500); return hf.acquireProjectLock({signal})", "aborted"},
		"with":     {"setTimeout(abort, 500); return hf.withProjectLock(() => 'never', {signal})", "aborted"},
		"AutoSave": {"const made = await hf.initAutoSave(() => '', {signal}); abort(); await made.flushNow()", "disposed"},
		"holdfast": {"const other = await openHoldfast({root: 'framed', signal}); await other.ready; abort(); await other.inspect()", "aborted"},
	} {
		t.Run(name, func(t *testing.T) {
			tab := w.tab(t, at("worker", "framed-"+name))
			assert.Equal(t, c.code, browser.Get[string](tab, `await hf.withProjectLock(async () => {
				const {openHoldfast} = await import('/holdfast.js')
				const {contentWindow} = document.body.appendChild(document.createElement('iframe'))
				const controller = new contentWindow.AbortController(), {signal} = controller, abort = () => controller.abort()
				return (async () => { `+c.call+` })().catch(({code, message}) => code === '`+c.code+`' ? code : message)
			})`))
		})
	}
}
