package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// The Wasm is the largest file, so the browser asks for it after the modules with which a page shows its text and edits.
func TestModulesComeBeforeTheWasm(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	for host, module := range map[string]string{"worker": "/holdfast-host.js", "page": "/holdfast-page.js"} {
		t.Run(host, func(t *testing.T) {
			root := "modules first " + host
			gate := make(chan struct{})
			n.fail(module, func(w http.ResponseWriter, r *http.Request) {
				<-gate
				n.files.ServeHTTP(w, r)
			})
			n.count("/holdfast.wasm")
			tab := w.earlyTab(t, named(host, root, "Ann"))
			tab.MustEval("edits(); null", nil)
			tab.WaitFor("told.includes('editable')", browser.Limit)
			assert.Equal(t, 0, n.count("/holdfast.wasm"))
			close(gate)
			tab.MustEval("await hf.ready; null", nil)
			assert.Equal(t, 1, n.count("/holdfast.wasm"))
			quiet(t, tab)
		})
	}
}
