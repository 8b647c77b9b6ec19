package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A page gets no lock with ifAvailable, because a page without Web Locks holds the lock over the file. It keeps no browser's lock while its
// callback runs.
func TestUnavailableLockOverAFileKeepsNoWebLock(t *testing.T) {
	t.Parallel()
	w := world{browser.Start(t, quick), browser.Serve(t, served(t, withoutWebLocks))}
	options := filesAt("worker", "unavailable", "")
	holder, asker := w.tab(t, ""), w.tab(t, "")
	holder.MustEval(withoutWebLocks+"await start("+options+"); hf.locks.request('x', () => { globalThis.held = true; return new Promise(() => {}) }); null", nil)
	holder.WaitFor("globalThis.held", browser.Limit)
	asker.MustEval("await start("+options+"); hf.locks.request('x', {ifAvailable: true}, lock => { globalThis.got = {lock}; return new Promise(done => { globalThis.end = done }) }).then(value => { globalThis.value = value }); null", nil)
	asker.WaitFor("globalThis.got", browser.Limit)
	assert.True(t, browser.Get[bool](asker, "got.lock === null"))
	assert.Empty(t, browser.Get[[]string](asker, "(await navigator.locks.query()).held.map(({name}) => name).filter(name => name === 'x')"))
	asker.MustEval("end('ended')", nil)
	asker.WaitFor("globalThis.value === 'ended'", browser.Limit)
	asker.Quiet()
	holder.Quiet()
}
