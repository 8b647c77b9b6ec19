package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
)

// unanswered opens a page whose runtime runs and does not begin to save. The page does not listen for a preview.
func (w world) unanswered(t *testing.T, holdfast string) *browser.Tab {
	t.Helper()
	tab := w.earlyTab(t, holdfast)
	tab.MustEval(`
		await hf.ready
		const {postMessage} = Worker.prototype
		globalThis.held = 0
		Worker.prototype.postMessage = function (message, ...more) {
			if (message.method === 'autosave') held++
			else postMessage.call(this, message, ...more)
		}
		globalThis.text = ''
		globalThis.autosave = hf.createAutoSave(() => text)
		type('typed')
		null`, nil)
	tab.WaitFor("held", browser.Limit)
	return tab
}

// The runtime runs already, and the page does not listen for a preview. It types before its AutoSave is ready, and ends.
func TestTextBeforeReadyBesideARuntime(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	holdfast := named("worker", "unready runs", "Ann")
	tab := w.unanswered(t, holdfast)
	tab.Navigate(w.URL("/blank?elsewhere"))
	tab.Close()
	w.finds(t, holdfast, "typed")
}

// The module that saves arrives after the page has given up its AutoSave. It keeps the text of that time.
func TestTextBeforeReadyOutlivesALateModule(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	gate := make(chan struct{})
	n.fail("/holdfast-autosave.js", func(w http.ResponseWriter, r *http.Request) {
		<-gate
		n.files.ServeHTTP(w, r)
	})
	const root = "unready late"
	tab := w.earlyTab(t, named("worker", root, "Ann"))
	tab.MustEval(`
		const {setTimeout: real} = globalThis
		globalThis.setTimeout = (run, ms, ...more) => real(run, ms > 10_000 && ms < 20_000 ? 0 : ms, ...more) // the limit of the call, not of the download
		edits()
		type('typed')
		const done = failure(autosave.dispose())
		text = 'emptied'
		result = await done`, nil)
	assert.Equal(t, "write-failed", browser.Get[event](tab, "result")["code"])
	close(gate)
	tab.WaitFor(inLocalStorage(root, "typed"), browser.Limit)
	tab.Close()
	w.finds(t, named("worker", root, "Ben"), "typed")
}

// A page shows the preview and types on it, and ends before its AutoSave is ready. The text continues what was saved.
func TestTextOnAPreviewOutlivesItsPage(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	holdfast := named("worker", "unready preview", "Ann")
	w.saves(t, holdfast, "{}", "saved")
	tab := w.earlyTab(t, n.never(holdfast))
	tab.MustEval("edits("+onlyPreview+"); null", nil)
	tab.WaitFor("text === 'saved' && autosave.kept", browser.Limit)
	tab.MustEval("type(' and typed'); null", nil)
	tab.Navigate(w.URL("/blank?elsewhere"))
	tab.Close()
	w.finds(t, holdfast, "saved and typed")
}

// A page types on after flushNow(), and ends before its AutoSave is ready.
func TestTextAfterAFlushBeforeReadyOutlivesItsPage(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	holdfast := named("worker", "unready flush", "Ann")
	tab := w.unanswered(t, holdfast)
	tab.MustEval("autosave.flushNow().catch(() => {}); type(' on'); null", nil)
	tab.Navigate(w.URL("/blank?elsewhere"))
	tab.Close()
	w.finds(t, holdfast, "typed on")
}

// Go's answer arrives after dispose() has waited for it in vain. The AutoSave ends then, and its lock is free.
func TestDisposeBeforeALateBeginning(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	holdfast := named("worker", "late beginning", "Ann")
	tab := w.earlyTab(t, holdfast)
	tab.MustEval(`
		await hf.ready
		globalThis.late = []
		const {postMessage} = Worker.prototype
		Worker.prototype.postMessage = function (message, ...more) {
			if (message.method === 'autosave') {
				const heard = this.onmessage
				const answers = one => one.kind === 'several' ? one.messages.some(answers) : one.kind === 'result' && one.id === message.id
				this.onmessage = event => answers(event.data) ? late.push(() => heard.call(this, event)) : heard.call(this, event)
			}
			return postMessage.call(this, message, ...more)
		}
		globalThis.text = ''
		globalThis.autosave = hf.createAutoSave(() => text)
		type('typed')
		null`, nil)
	tab.WaitFor("late.length", browser.Limit)
	tab.MustEval(`
		const {setTimeout: real} = globalThis
		globalThis.setTimeout = (run, ms, ...more) => real(run, ms > 10_000 && ms < 20_000 ? 0 : ms, ...more) // the limit of the call
		result = await failure(autosave.dispose())
		globalThis.setTimeout = real
		late.forEach(answer => answer())
		null`, nil)
	assert.Equal(t, "write-failed", browser.Get[event](tab, "result")["code"])
	tab.WaitFor("(await locks()).held === 0", browser.Limit/3)
	tab.Close()
	w.finds(t, holdfast, "typed")
}

// The runtime cannot be fetched, and the page returns its text as a promise. A close() that rejects leaves that text as a draft.
func TestAsynchronousTextWithoutARuntime(t *testing.T) {
	t.Parallel()
	server := serve(t)
	b := profiles(t, 1)[0]
	for _, host := range []string{"worker", "page"} {
		t.Run(host, func(t *testing.T) {
			tab := server.member(t, b, host, "Ann")
			open := fmt.Sprintf("{host: '%s', root: 'asynchronous-%[1]s', server: {url: location.origin}}", host)
			tab.MustEval("await hf.close(); await start("+open+"); null", nil)
			tab.MustEval(endings.Editing, nil)
			tab.MustEval("await edit(); type('saved'); await autosave.flushNow(); await hf.close(); null", nil)

			address := server.Address()
			server.Stop()
			tab.MustEval("await start("+open+`)
				text = ''
				globalThis.autosave = hf.createAutoSave(() => Promise.resolve(text))
				autosave.addEventListener('autosave:preview', ({detail}) => text = decode(detail.content))
				null`, nil)
			tab.WaitFor("text === 'saved'", browser.Limit)
			assert.Equal(t, "load-failed", browser.Get[event](tab, "await failure(autosave.ready)")["code"])
			tab.MustEval("type(', typed'); result = hf.close(); text = ''; null", nil)
			assert.Equal(t, "load-failed", browser.Get[event](tab, "await failure(result)")["code"])
			server.Start(address)

			next := server.member(t, b, host, "Ben")
			next.MustEval("await hf.close(); await start("+open+"); null", nil)
			beginEditing(next, "{}")
			next.WaitFor("text === 'saved, typed'", browser.Limit)
			next.MustEval("await hf.close(); null", nil)
			next.Close()
			tab.Close()
		})
	}
}

// A page that ends takes no snapshot of a text that is saved, which may cost it tens of milliseconds.
func TestSavedPageTakesNoSnapshotAsItEnds(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := w.earlyTab(t, named("worker", "no snapshot at the end", "Ann"))
	tab.MustEval("globalThis.taken = 0; edits({}, undefined, () => { taken++; return text }); null", nil)
	tab.WaitFor("!autosave.readOnly && autosave.lease", browser.Limit)
	tab.MustEval("type('typed'); await autosave.flushNow(); taken = 0; dispatchEvent(new PageTransitionEvent('pagehide')); null", nil)
	assert.Zero(t, browser.Get[int](tab, "taken"))
	tab.Close()
}
