package e2e

import (
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// statusPage shows an AutoSave with <holdfast-status>, which was in the page before its element was defined.
const statusPage = `
document.documentElement.lang = 'en'
document.documentElement.style.colorScheme = 'light dark'
Object.assign(document.body.style, {background: 'Canvas', color: 'CanvasText', fontFamily: 'system-ui'})
document.body.innerHTML = '<main><h1>Notes</h1><holdfast-status></holdfast-status></main>'
const bar = document.querySelector('holdfast-status')
bar.autosave = undefined
hf.addEventListener('lock:handover-requested', e => globalThis.keep && e.preventDefault())
let text = ''
const made = hf.createAutoSave(() => text, {debounceMs: 20, idleMs: 50})
made.addEventListener('autosave:editable', e => { if (e.detail.content) text = new TextDecoder().decode(e.detail.content) })
bar.autosave = made
await import('/element.js')
const part = name => bar.shadowRoot.querySelector('[part~="' + name + '"]')
const shown = name => part(name)?.checkVisibility() ? part(name).textContent : undefined
const type = more => { text += more; made.markDirty() }
null`

func status(t *testing.T, w world, root, owner string) *browser.Tab {
	t.Helper()
	tab := w.tab(t, named("worker", root, owner))
	tab.MustEval(statusPage, nil)
	return tab
}

// The element shows the editor and the saved state. The user asks, takes over and decides with only the keyboard.
func TestStatusElement(t *testing.T) {
	t.Parallel()
	w := open(t, whole)
	ann := status(t, w, "status", "Ann")
	ann.WaitFor("shown('who') === 'You edit.'", browser.Limit)
	ann.MustEval("type('Ann')", nil)
	ann.WaitFor("/^Saved at .*[0-9]/.test(shown('save')) && shown('ask') === undefined", browser.Limit)
	accessible(t, ann, "editing")

	ben := status(t, w, "status", "Ben")
	ben.WaitFor("shown('who') === 'Ann edits.' && shown('ask') === 'Ask to edit'", browser.Limit)
	accessible(t, ben, "reading")

	ann.MustEval("globalThis.keep = true; null", nil)
	ben.MustEval("part('ask').focus()", nil)
	ben.Press("Enter")
	ben.WaitFor("shown('message') === 'The page that edits refused.' && shown('who') === 'Ann edits.'", browser.Limit)
	assert.Equal(t, "ask", browser.Get[string](ben, "bar.shadowRoot.activeElement.part[1]"), "the button keeps the focus")
	accessible(t, ben, "refused")
	ann.MustEval("globalThis.keep = false; null", nil)
	ben.Press("Enter")
	ben.WaitFor("shown('who') === 'You edit.' && shown('message') === undefined && text === 'Ann'", browser.Limit)
	assert.Equal(t, "status", browser.Get[string](ben, "bar.shadowRoot.activeElement?.part[0] ?? 'nothing'"), "the focus is not lost with the button")
	ann.WaitFor("shown('who') === 'Ben edits.'", browser.Limit)

	// Text of the read-only page is a draft, and the editor decides about it.
	ann.MustEval("type(' alone')", nil)
	ben.MustEval("type(' and Ben'); await made.flushNow()", nil)
	ann.MustEval("await hf.close().catch(() => null)", nil) // the text is a draft
	ann.Show()
	ben.Show()
	ben.WaitFor("shown('draft-text') === 'Ann alone' && shown('who') === 'You edit. There is a draft to decide about.'", browser.Limit)
	accessible(t, ben, "a draft")
	statusShots(ben)
	ben.MustEval("part('use').focus(); bar.setAttribute('text-use', 'Take this')", nil)
	assert.Equal(t, []string{"Take this", "use"}, browser.Get[[]string](ben, "[shown('use'), bar.shadowRoot.activeElement?.part[1] ?? 'nothing']"), "the button keeps the focus when the list is drawn again")
	ben.Press("Enter")
	ben.WaitFor("text === 'Ann alone' && shown('draft-text') === undefined && shown('who') === 'You edit.'", browser.Limit)
	assert.Equal(t, "status", browser.Get[string](ben, "bar.shadowRoot.activeElement.part[0]"), "the focus is not lost with the button")
	ben.Quiet()
	ann.Quiet()
}

// A refusal is no longer shown when the page edits after all.
func TestStatusElementForgetsRefusal(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	ann, ben := status(t, w, "refused", "Ann"), status(t, w, "refused", "Ben")
	ann.WaitFor("shown('who') === 'You edit.'", browser.Limit)
	ben.WaitFor("shown('who') === 'Ann edits.'", browser.Limit)
	ann.MustEval("globalThis.keep = true; null", nil)
	ben.MustEval("part('ask').click()", nil)
	ben.WaitFor("shown('message') === 'The page that edits refused.' && shown('who') === 'Ann edits.'", browser.Limit)
	ann.MustEval("await hf.close(); null", nil)
	ben.WaitFor("shown('who') === 'You edit.'", browser.Limit)
	assert.Equal(t, "no message", browser.Get[string](ben, "shown('message') ?? 'no message'"))
	for _, tab := range []*browser.Tab{ann, ben} {
		tab.Quiet()
	}
}

// A failed download is no longer shown when the AutoSave has loaded again.
func TestStatusElementForgetsFailedDownload(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	ann := status(t, w, "again", "Ann")
	ann.WaitFor("shown('who') === 'You edit.' && made.lease", browser.Limit)
	listening := make(chan struct{})
	n.fail("/holdfast.wasm", func(w http.ResponseWriter, r *http.Request) {
		<-listening
		http.NotFound(w, r)
	})
	ben := w.Open(t, w.URL("/blank"))
	ben.MustEval("const {createHoldfast} = await import('/holdfast.js'); globalThis.hf = createHoldfast({root: 'again'}); null", nil)
	ben.MustEval(statusPage, nil)
	ben.MustEval("const told = []; new MutationObserver(() => told.push(part('message').textContent)).observe(part('message'), {childList: true})", nil)
	close(listening)
	ben.WaitFor("/holdfast.wasm/.test(told[0]) && shown('who') === 'Ann edits.'", browser.Limit)
	assert.Equal(t, "no message", browser.Get[string](ben, "shown('message') ?? 'no message'"))
	ann.Quiet()
	ben.Quiet("404")
}

// An element that is removed and inserted again, or gets another AutoSave, shows the current state. Its attributes
// set its texts.
func TestStatusElementIsTranslatedAndMoved(t *testing.T) {
	t.Parallel()
	w := open(t, whole)
	tab := status(t, w, "status moved", "Ann")
	tab.WaitFor("shown('who') === 'You edit.'", browser.Limit)
	tab.MustEval("bar.setAttribute('text-editing', 'Du schreibst.'); bar.setAttribute('text-saved', 'Gesichert um {time}.'); bar.lang = 'de'; type('x')", nil)
	tab.WaitFor("shown('who') === 'Du schreibst.' && /^Gesichert um [0-9:]+[.]$/.test(shown('save'))", browser.Limit)
	tab.MustEval("bar.lang = 'en_US'; bar.setAttribute('text-saved', 'Safe since {time}.')", nil)
	assert.Regexp(t, `^Safe since \d+:`, browser.Get[string](tab, "shown('save')"), "a language that does not exist")
	tab.MustEval("bar.remove(); await made.dispose(); document.querySelector('main').append(bar)", nil)
	tab.WaitFor("shown('who') !== 'Du schreibst.'", browser.Limit)
	tab.MustEval("bar.autosave = undefined", nil)
	assert.Equal(t, "No document is open.", browser.Get[string](tab, "shown('who')"))
	tab.MustEval("const next = hf.createAutoSave(() => text, {path: ['other']}); bar.autosave = next; bar.autosave = next", nil)
	tab.WaitFor("shown('who') === 'Du schreibst.'", browser.Limit)
	tab.MustEval("const off = hf.createAutoSave(() => text, {path: ['off'], enabled: false}); bar.autosave = off", nil)
	tab.WaitFor("shown('who') === 'Saving is switched off.'", browser.Limit)
	// A theme styles it by parts and custom properties.
	tab.MustEval(`
		const sheet = new CSSStyleSheet()
		sheet.replaceSync('holdfast-status { --holdfast-waiting: rgb(1, 2, 3) } holdfast-status::part(who) { letter-spacing: 3px }')
		document.adoptedStyleSheets.push(sheet)`, nil)
	assert.Equal(t, []string{"rgb(1, 2, 3)", "3px"}, browser.Get[[]string](tab, "[getComputedStyle(part('status')).color, getComputedStyle(part('who')).letterSpacing]"))
	assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
	tab.Quiet()
}

// An AutoSave that has ended edits nothing and reads nothing: no document is open, and there is nothing to ask for.
func TestStatusElementOfAnAutoSaveThatHasEnded(t *testing.T) {
	t.Parallel()
	w := open(t, whole)
	for _, end := range []string{"await made.dispose()", "await hf.close()"} {
		ann, ben := status(t, w, "ended "+end, "Ann"), status(t, w, "ended "+end, "Ben")
		ann.WaitFor("shown('who') === 'You edit.'", browser.Limit)
		ben.WaitFor("shown('who') === 'Ann edits.'", browser.Limit)
		for _, tab := range []*browser.Tab{ben, ann} {
			tab.MustEval(end+"; null", nil)
			tab.WaitFor("shown('who') === 'No document is open.'", browser.Limit)
			assert.Equal(t, []bool{true, true, true}, browser.Get[[]bool](tab, "['ask', 'save', 'message'].map(name => !shown(name))"))
			tab.Quiet()
		}
	}
}

// statusShots stores pictures of the element if STATUS_SHOTS names a folder.
func statusShots(tab *browser.Tab) {
	dir := os.Getenv("STATUS_SHOTS")
	if dir == "" {
		return
	}
	tab.Screenshot(dir+"/wide-light.png", 900, 320, false)
	tab.Screenshot(dir+"/wide-dark.png", 900, 320, true)
	tab.Screenshot(dir+"/phone-light.png", 360, 520, false)
	tab.Screenshot(dir+"/phone-dark.png", 360, 520, true)
}
