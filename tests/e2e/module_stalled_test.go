package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A module of AutoSave does not arrive while the runtime runs. The call that needs it rejects with "load-failed" within the limit of a
// download, and a page edits without the modules that only make it faster. When that download has ended, the next call begins.
func TestModuleThatDoesNotArrive(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	for i, c := range []struct {
		name   string
		needed bool
	}{{"autosave", true}, {"preview", false}, {"early", false}} {
		for _, host := range turns(i, "worker", "page") {
			t.Run(c.name+"/"+host, func(t *testing.T) {
				works := make(chan struct{})
				n.fail("/holdfast-"+c.name+".js", func(http.ResponseWriter, *http.Request) {
					<-works
					panic(http.ErrAbortHandler) // ends the connection
				})
				tab := w.Open(t, w.URL("/blank"))
				begin(tab, "")
				tab.MustEval(handles, nil)
				tab.MustEval(`
					const real = setTimeout
					globalThis.setTimeout = (run, ms, ...args) => real(run, ms === 30_000 ? 1000 : ms, ...args) // the limit of a download
					hf = createHoldfast(`+at(host, "stalled "+c.name+" "+host)+`)
					globalThis.outcome = undefined
					hf.initAutoSave(() => text).then(made => { globalThis.made = made; outcome = made.readOnly ? 'reads' : 'edits' }, ({code}) => { outcome = code })
					null`, nil)
				tab.WaitFor("outcome", browser.Limit)
				assert.Equal(t, map[bool]string{true: "load-failed", false: "edits"}[c.needed], browser.Get[string](tab, "outcome"))
				close(works)
				tab.MustEval("await import('/holdfast-"+c.name+".js').catch(() => null)", nil) // the download that has ended
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
