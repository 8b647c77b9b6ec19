package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A module of AutoSave does not arrive while the runtime runs. The call that needs it rejects with "load-failed" within the limit of a
// download, and a page edits without the modules that only make it faster. The next call asks for the module again.
func TestModuleThatDoesNotArrive(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	for i, c := range []struct {
		name   string
		needed bool
	}{{"autosave", true}, {"preview", false}, {"early", false}} {
		for _, host := range turns(i, "worker", "page") {
			t.Run(c.name+"/"+host, func(t *testing.T) {
				path := "/holdfast-" + c.name + ".js"
				n.count(path) // forgets the requests of the test before
				n.fail(path, stall)
				tab := w.Open(t, w.URL("/blank"))
				begin(tab, "")
				tab.MustEval(handles, nil)
				tab.MustEval(`
					const set = setTimeout, clear = clearTimeout
					globalThis.limits = new Map() // those of downloads that run
					globalThis.setTimeout = (run, ms, ...args) => {
						const id = set(run, ms, ...args)
						if (ms === 30_000) limits.set(id, run)
						return id
					}
					globalThis.clearTimeout = id => { limits.delete(id); clear(id) }
					hf = createHoldfast(`+at(host, "stalled "+c.name+" "+host)+`)
					globalThis.outcome = undefined
					hf.initAutoSave(() => text).then(made => { globalThis.made = made; outcome = made.readOnly ? 'reads' : 'edits' }, ({code}) => { outcome = code })
					null`, nil)
				require.Eventually(t, func() bool { return n.count(path) > 0 }, browser.Limit, 10*time.Millisecond)
				tab.WaitFor("limits.size === 1", browser.Limit) // everything else has arrived
				tab.MustEval("const [[id, run]] = limits; clearTimeout(id); run(); null", nil)
				tab.WaitFor("outcome", browser.Limit)
				assert.Equal(t, map[bool]string{true: "load-failed", false: "edits"}[c.needed], browser.Get[string](tab, "outcome"))
				tab.MustEval("globalThis.made ??= await hf.initAutoSave(() => text); text = 'typed'; made.markDirty(); await made.flushNow(); null", nil)
				assert.Equal(t, "typed", browser.Get[string](tab, "new TextDecoder().decode(await made.read('current'))"))
				tab.MustEval("await hf.close(); null", nil)
				assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
				tab.Quiet("ERR_")
				tab.Close()
			})
		}
	}
}

// The module that takes locks early does not arrive. The page is shown what was saved last, and does not edit before the runtime runs; once
// the module is there, it edits.
func TestPreviewWithoutTheRightToEdit(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		holdfast := named(host, "late right "+host, "Ann")
		w.saves(t, holdfast, "{}", "saved last")
		gate := n.hold("/holdfast-early.js")
		tab := w.earlyTab(t, n.never(holdfast))
		tab.MustEval("edits(); null", nil)
		if err := tab.Wait("told.length > 0", browser.Limit/4); err != nil {
			t.Errorf("no preview: %v", err)
		}
		close(gate)
		tab.WaitFor("!autosave.readOnly", browser.Limit)
		assert.Equal(t, []string{"preview free: saved last", "editable: saved last"}, browser.Get[[]string](tab, "told"))
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
		tab.Close()
	})
}

// The module that saves does not arrive. The page holds no lock, as it cannot edit: another page edits meanwhile. Once the module is there
// and the other page has ended, the page edits.
func TestNoLockWithoutTheModuleThatSaves(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		holdfast := named(host, "no lock "+host, "Ann")
		w.saves(t, holdfast, "{path: ['plan']}", "saved last")
		other := w.earlyTab(t, holdfast)
		other.MustEval("edits({path: ['other']}); await autosave.ready; await autosave.dispose()", nil) // has the module
		gate := n.hold("/holdfast-autosave.js")
		tab := w.earlyTab(t, n.never(holdfast))
		tab.MustEval("edits({path: ['plan']}); null", nil)
		tab.WaitFor("told.length > 0", browser.Limit)
		other.MustEval("edits({path: ['plan']}); null", nil)
		if err := other.Wait("!autosave.readOnly", browser.Limit/4); err != nil {
			t.Errorf("nobody edits: %v", err)
		}
		close(gate)
		other.WaitFor("!autosave.readOnly", browser.Limit)
		other.MustEval("type(' and more'); await autosave.flushNow(); await hf.close()", nil)
		tab.WaitFor("!autosave.readOnly", browser.Limit)
		assert.Equal(t, []string{"preview free: saved last", "editable: saved last and more"}, browser.Get[[]string](tab, "told"))
		for _, tab := range []*browser.Tab{tab, other} {
			assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
			tab.Close()
		}
	})
}
