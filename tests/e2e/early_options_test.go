package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// Options that cannot be sent to a worker, such as the proxies of Vue and functions that nobody calls, keep no page read-only: both hosts
// take them, before and after the runtime runs.
func TestOptionsThatCannotBeCloned(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		for name, options := range map[string]string{"function": "{load: () => {}, path: ['a']}", "proxy": "{path: new Proxy(['a'], {})}"} {
			for _, when := range []string{"early", "late"} {
				root := fmt.Sprintf("no clone %s %s %s", host, name, when)
				later, arrive := n.gated(named(host, root, "Ann"))
				tab := w.earlyTab(t, later)
				if when == "late" {
					arrive()
					tab.MustEval("await hf.ready; null", nil)
				}
				tab.MustEval("edits("+options+"); await autosave.ready; null", nil)
				tab.WaitFor("told.includes('editable') && !autosave.readOnly", browser.Limit)
				tab.MustEval("type('typed'); null", nil)
				if when == "early" {
					arrive()
				}
				tab.WaitFor("told.includes('saved') || told.includes('readonly')", browser.Limit)
				assert.Equal(t, []string{"editable", "saved"}, browser.Get[[]string](tab, "told"), root)
				tab.MustEval("lease = await hf.acquireProjectLock({path: new Proxy(['b'], {}), backoff: new Proxy({maxRetries: 1}, {})}); await lease.release(); null", nil)
				assert.Equal(t, "invalid-argument", browser.Get[event](tab, "await failure(hf.acquireProjectLock({path: new Proxy([''], {})}))")["code"])
				quiet(t, tab)
			}
		}
	})
}

// A page changes the array that it gave as a path while its runtime is loading.
func TestPathThatChangesAfterTheCall(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		root := "changed path " + host
		later, arrive := n.gated(named(host, root, "Ann"))
		tab := w.earlyTab(t, later)
		tab.MustEval("globalThis.path = ['a']; edits({path}); null", nil)
		tab.WaitFor("!autosave.readOnly", browser.Limit)
		tab.MustEval(`
			type('typed in a')
			globalThis.place = ['c']
			globalThis.leases = [{path: place}, {paths: [place, ['d']]}].map(options => hf.acquireProjectLock({...options, mode: 'shared'}))
			path[0] = place[0] = 'b'
			null`, nil)
		arrive()
		assert.Equal(t, [][][]string{{{"c"}}, {{"c"}, {"d"}}}, browser.Get[[][][]string](tab, "(await Promise.all(leases)).map(({paths}) => paths)"))
		tab.MustEval("await autosave.flushNow(); null", nil)
		quiet(t, tab)
		for document, saved := range map[string]string{"a": "typed in a", "b": ""} {
			next := w.earlyTab(t, named(host, root, "Ben"))
			next.MustEval("edits({path: ['"+document+"']}); null", nil)
			next.WaitFor("autosave.lease && told.some(one => one.startsWith('editable'))", browser.Limit)
			assert.Equal(t, saved, browser.Get[string](next, "text"), document)
			quiet(t, next)
		}
	})
}
