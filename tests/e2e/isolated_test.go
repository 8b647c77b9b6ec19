package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A page that is isolated from other origins (COOP and COEP) and a frame in it lock and save as two tabs do.
func TestIsolatedPageAndItsFrame(t *testing.T) {
	t.Parallel()
	files := pages(t, siteDir)
	files.HandleFunc("/framed", blank(func(h http.Header) { h.Del("Content-Security-Policy") })) // the test evaluates in the frame
	w := world{browser.Start(t, quick), browser.Serve(t, http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("Cross-Origin-Embedder-Policy", "require-corp")
		files.ServeHTTP(out, r)
	}))}
	eachHost(t, func(t *testing.T, host string) {
		options := at(host, "isolated "+host)
		tab := w.Open(t, w.URL("/framed"))
		begin(tab, options)
		assert.True(t, browser.Get[bool](tab, "crossOriginIsolated"))
		tab.MustEval(`
			const frame = document.createElement('iframe')
			frame.src = '/framed'
			await new Promise(loaded => { frame.onload = loaded; document.body.append(frame) })
			const inner = await (await frame.contentWindow.eval("import('/holdfast.js')")).openHoldfast(`+options+`)
			const saver = await inner.initAutoSave(() => 'typed in the frame', {debounceMs: 20})
			saver.markDirty()
			await saver.flushNow()
			const outer = await hf.initAutoSave(() => '')
			null`, nil)
		assert.Equal(t, []any{true, "opfs", false, true}, browser.Get[[]any](tab, "[frame.contentWindow.crossOriginIsolated, saver.state().storage, saver.readOnly, outer.readOnly]"))
		tab.MustEval("frame.remove(); null", nil)
		tab.WaitFor("!outer.readOnly", browser.Limit)
		assert.Equal(t, "typed in the frame", browser.Get[string](tab, "new TextDecoder().decode(await outer.read('current'))"))
		tab.MustEval("await hf.close()", nil)
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
		tab.Quiet()
		tab.Close()
	})
}
