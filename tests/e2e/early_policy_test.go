package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A page whose content security policy forbids Wasm never gets a runtime, and learns this late over a slow line. It shows the preview and does
// not edit: the right would have to be taken back.
func TestNotEditableWhereWasmMayNotRun(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	n.files.(*http.ServeMux).HandleFunc("/no-wasm", blank(func(h http.Header) {
		h.Set("Content-Security-Policy", strings.Replace(h.Get("Content-Security-Policy"), " 'wasm-unsafe-eval'", "", 1))
	}))
	eachHost(t, func(t *testing.T, host string) {
		holdfast := named(host, "no wasm "+host, "Ann")
		w.saves(t, holdfast, "{}", "saved")
		n.fail(map[string]string{"worker": "/holdfast-host.js", "page": "/holdfast-page.js"}[host], stall)
		tab := w.Open(t, w.URL("/no-wasm"))
		begin(tab, "")
		tab.MustEval("await start("+holdfast+"); null", nil)
		tab.MustEval(early, nil)
		tab.MustEval("edits(); autosave.ready.catch(() => {}); null", nil)
		tab.WaitFor("told.length > 0", browser.Limit/6)
		tab.MustEval("await new Promise(done => setTimeout(done, 500)); null", nil)
		assert.Equal(t, []string{"preview free: saved"}, browser.Get[[]string](tab, "told"))
		assert.True(t, browser.Get[bool](tab, "autosave.readOnly"))
		tab.MustEval("hf.close().catch(() => {}); null", nil)
		tab.Close()
	})
}
