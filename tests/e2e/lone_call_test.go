package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// The worker is silent before the page makes the only call that waits for it. The page asks the worker for a sign of life, and so can give
// it up: no other call comes that would begin the watch.
func TestLoneCallToSilentWorkerIsWatched(t *testing.T) {
	t.Parallel()
	tab := open(t, quick).tab(t, "{root: 'lone'}")
	tab.MustEval(`
		await new Promise((done) => setTimeout(done, 1000)) // the worker is at rest
		globalThis.posted = []
		Worker.prototype.postMessage = function (message) { posted.push(message.kind) }
		hf.acquireProjectLock().catch(() => {})
		null`, nil)
	tab.WaitFor("posted.length > 1", browser.Limit)
	assert.Equal(t, []string{"call", "ping"}, browser.Get[[]string](tab, "posted"))
}
