package e2e

import (
	"fmt"
	"net/http"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// clearing serves the site, and an address whose response makes the browser clear the site's storage.
func clearing(t *testing.T) *http.ServeMux {
	mux := pages(t, siteDir)
	mux.HandleFunc("/clear", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Clear-Site-Data", `"storage"`) })
	return mux
}

// busyPage is a page that does everything at once. settled contains the results of its calls.
const busyPage = `
	const pause = ms => new Promise(done => setTimeout(done, ms))
	const under = fn => [0, 1, 2, 3].map(fn)
	const since = now()
	const begun = [
		(async () => { for (let i = 0; i < 50; i++) { type('x'); await pause(10) } })(),
		(async () => { type('y'.repeat(1e5)); await autosave.flushNow() })(),
		...under(i => hf.withProjectLock(() => pause(20), {path: ['place ' + i % 2], within: autosave.lease, timeoutMs: 10000})),
		...under(i => hf.locks.request('name ' + i % 2, {signal: AbortSignal.timeout(10000)}, () => pause(20))),
		autosave.history(), autosave.read('current'), autosave.drafts(), hf.inspect(), hf.locks.query(),
	]
	globalThis.settled = begun.map(() => 'pending')
	begun.forEach((call, i) => call.then(() => 'fulfilled', reason => String(reason.code ?? reason)).then(became => { settled[i] = became + ' ' + Math.round(now() - since) }))
	null`

// The site's data is cleared while all kinds of calls run: no call hangs, and the shown text is saved again. If
// Chromium no longer answers after that, the text is saved after a restart of the browser.
func TestClearedSiteDataHangsNothing(t *testing.T) {
	t.Parallel()
	ways := map[string]func(w world, tab *browser.Tab){
		"header": func(_ world, tab *browser.Tab) { tab.MustEval("await fetch('/clear'); null", nil) },
		"tools":  func(w world, tab *browser.Tab) { tab.Clear(w.URL("")) },
	}
	parts := map[string]func(t *testing.T){}
	for way, clear := range ways {
		for i, host := range []string{"worker", "page"} {
			for j, strategy := range []string{"web-lock", "file-lock"} {
				if (i != j || (way == "header") != (i == 0)) && rounds(t, 0, 1) == 0 {
					continue // a quarter of them
				}
				parts[way+"/"+host+"/"+strategy] = func(t *testing.T) {
					w := world{browser.Start(t, quick), browser.Serve(t, clearing(t))}
					testCleared(t, w, fmt.Sprintf("{strategy: %q, host: %q}", strategy, host), clear)
				}
			}
		}
	}
	atOnce(t, parts)
}

func testCleared(t *testing.T, w world, options string, clear func(w world, tab *browser.Tab)) {
	tab := w.editor(t, options, "{debounceMs: 20}")
	tab.MustEval("type('kept'); await autosave.flushNow(); null", nil)
	tab.MustEval(busyPage, nil)
	clear(w, tab)
	if err := tab.Wait("!settled.includes('pending')", 2*browser.Limit); err != nil {
		t.Error(err)
	}
	t.Log(browser.Get[[]string](tab, "settled"))
	tab.MustEval("type('!'); null", nil)
	answered(t, tab, callMs, map[string][]string{
		"autosave.flushNow()": {"", "write-failed", "read-only", "storage-evicted"},
		"autosave.history()":  {"", "read-failed"},
		"autosave.drafts()":   {"", "read-failed"},
		"hf.acquireProjectLock({path: ['place'], timeoutMs: 9000}).then(lease => lease.release())": {"", "acquire-timeout", "unsupported"},
		"hf.initAutoSave(() => '', {path: ['other']}).then(other => other.dispose())":              {"", "unsupported"},
	})
	answered(t, tab, callMs, map[string][]string{"hf.close()": {"", "write-failed", "read-only", "storage-evicted"}})
	assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
	typed := browser.Get[int](tab, "text.length")
	w.Restart(t, syscall.SIGTERM)

	next := w.tab(t, options)
	beginEditing(next, "")
	next.WaitFor("!autosave.readOnly && heard('editable').length > 0", browser.Limit)
	found := browser.Get[string](next, "[text, ...await Promise.all((await autosave.drafts()).map(async ({id}) => decode(await autosave.read(id))))].find(one => one.startsWith('kept') && one.endsWith('!') && one.length === "+fmt.Sprint(typed)+") ? 'found' : text.slice(0, 99)")
	assert.Equal(t, "found", found)
	next.MustEval("await hf.close()", nil)
}
