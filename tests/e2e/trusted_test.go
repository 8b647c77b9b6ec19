package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// requiringTrustedTypes serves a page at /trusted that requires Trusted Types and allows one policy.
func requiringTrustedTypes(t *testing.T, policy string) world {
	t.Helper()
	mux := pages(t, siteDir)
	mux.HandleFunc("/trusted", blank(func(h http.Header) {
		h.Set("Content-Security-Policy", h.Get("Content-Security-Policy")+"; require-trusted-types-for 'script'; trusted-types "+policy)
	}))
	return world{browser.Start(t, quick), browser.Serve(t, mux)}
}

// A page that requires Trusted Types allows the policy "holdfast" and no other one.
func TestTrustedTypes(t *testing.T) {
	t.Parallel()
	w := requiringTrustedTypes(t, "holdfast")
	eachHost(t, func(t *testing.T, host string) {
		tab := w.Open(t, w.URL("/trusted"))
		begin(tab, "")
		assert.Equal(t, "TypeError", browser.Get[string](tab, "(() => { try { new Worker('/holdfast-worker.js') } catch (e) { return e.name } })()"), "the browser enforces the policy")
		for _, module := range []string{"/holdfast.js", "/holdfast.js?again"} { // another copy makes no second policy
			tab.MustEval(`{
				const {createHoldfast} = await import('`+module+`')
				const hf = createHoldfast(`+at(host, "trusted "+host+module)+`)
				const autosave = hf.createAutoSave(() => 'text', {debounceMs: 20})
				await autosave.ready
				autosave.markDirty()
				await autosave.flushNow()
				result = [autosave.state().storage, new TextDecoder().decode(await autosave.read('current'))]
				const services = hf.serve('sums', () => ({sum: (a, b) => a + b}))
				result.push(await services.call('sum', 2, 3))
				await hf.close()
			} null`, nil)
			assert.Equal(t, []any{"opfs", "text", 5.0}, browser.Get[[]any](tab, "result"))
		}
		eventually(t, func() bool { return tab.Workers() == 0 }, "a worker is left")
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
		tab.Quiet("TrustedScriptURL")
	})
}

// A page that requires Trusted Types and does not allow the policy gets an error that names the policy.
func TestTrustedTypesWithoutThePolicy(t *testing.T) {
	t.Parallel()
	w := requiringTrustedTypes(t, "other")
	eachHost(t, func(t *testing.T, host string) {
		tab := w.Open(t, w.URL("/trusted"))
		begin(tab, "")
		tab.MustEval(`{
			await start(`+named(host, "no policy "+host, "Ann")+`)
			const autosave = hf.createAutoSave(() => '')
			result = await new Promise(done => { // in the page, it may edit before Go finds that the helper cannot start
				autosave.addEventListener('autosave:readonly', ({detail}) => done(detail.error))
				autosave.ready.catch(done)
			})
		} null`, nil)
		assert.Equal(t, "unsupported", browser.Get[string](tab, "result.code"))
		assert.Contains(t, browser.Get[string](tab, "result.message"), `Policy "holdfast" disallowed`)
		tab.MustEval("await hf.close().catch(() => undefined); null", nil)
		tab.WaitFor("(await locks()).held === 0", browser.Limit)
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
		tab.Quiet("TrustedScriptURL", "policy", "Policy", "helper")
	})
}
