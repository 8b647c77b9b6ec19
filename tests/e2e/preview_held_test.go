package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A preview says whether a lock keeps the page from editing: one on the document in either mode, or an exclusive one around it.
func TestPreviewSaysWhetherTheDocumentIsHeld(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	const root, options = "whether held", "{path: ['a', 'b']}"
	holdfast := named("worker", root, "Ann")
	w.saves(t, holdfast, options, "saved")
	for _, c := range []struct{ name, mode, told string }{
		{"//a/b", "exclusive", "held"}, {"//a/b", "shared", "held"},
		{"//a", "exclusive", "held"}, {"", "exclusive", "held"},
		{"//a", "shared", "free"}, {"", "shared", "free"},
		{"//a/c", "exclusive", "free"}, {"//a/b/c", "exclusive", "free"},
	} {
		t.Run(c.mode+" "+c.name, func(t *testing.T) {
			other, tab := w.Open(t, w.URL("/blank")), w.earlyTab(t, n.never(holdfast))
			other.MustEval("await new Promise(done => { void navigator.locks.request('holdfast:"+root+c.name+"', {mode: '"+c.mode+"'}, () => new Promise(() => done())) }); null", nil)
			tab.MustEval("edits("+options+"); null", nil)
			tab.WaitFor("told.length > 0", browser.Limit)
			assert.Equal(t, "preview "+c.told+": saved", browser.Get[string](tab, "told[0]"))
			other.Close()
			tab.MustEval("hf.close().catch(() => {}); null", nil)
			tab.Close()
		})
	}
}
