package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// The worker has died, and its successor does not arrive. A page that gives up its wish to edit hears of that at once.
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
