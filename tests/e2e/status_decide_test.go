package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// decidingPage shows an AutoSave with a draft in <holdfast-status>. The decision about it ends when the test calls settle or refuse.
const decidingPage = `
document.body.innerHTML = '<holdfast-status></holdfast-status><textarea></textarea>'
const bar = document.querySelector('holdfast-status'), field = document.querySelector('textarea')
const part = name => bar.shadowRoot.querySelector('[part~="' + name + '"]')
const turn = () => new Promise(done => setTimeout(done))
const made = drafts => Object.assign(new EventTarget(), {
	readOnly: false, ready: Promise.resolve(), subscribe: () => () => null, state: () => ({phase: 'idle', drafts: drafts.length}),
	drafts: async () => drafts, read: async () => new TextEncoder().encode('a draft'),
	resolveDraft: () => new Promise((done, fail) => {
		globalThis.settle = () => { drafts.length = 0; done() }
		globalThis.refuse = () => fail(Object.assign(new Error('refused'), {code: 'disposed'}))
	}),
})
await import('/element.js')
bar.autosave = made([{id: 'one', bytes: 7}])
await turn()
part('discard').focus()
part('discard').click()
null`

// deciding opens decidingPage. The user has pressed the button that discards the draft.
func deciding(t *testing.T) *browser.Tab {
	w := open(t, quick)
	tab := w.Open(t, w.URL("/blank"))
	tab.MustEval(decidingPage, nil)
	return tab
}

// The user decides about a draft and types on before the decision ends. The text field keeps the focus.
func TestStatusElementLeavesFocusInTheText(t *testing.T) {
	t.Parallel()
	tab := deciding(t)
	tab.MustEval("field.focus(); settle(); await turn()", nil)
	assert.Equal(t, []string{"", "TEXTAREA"}, browser.Get[[]string](tab, "[part('draft-text')?.textContent ?? '', document.activeElement.tagName]"))
	tab.Quiet()
}

// The button that had the focus goes with its draft. The status gets the focus.
func TestStatusElementKeepsTheFocusOfADraft(t *testing.T) {
	t.Parallel()
	tab := deciding(t)
	tab.MustEval("settle(); await turn()", nil)
	assert.Equal(t, "status", browser.Get[string](tab, "bar.shadowRoot.activeElement?.part[0] ?? 'nothing'"))
	tab.Quiet()
}

// A decision fails after the element got another AutoSave. The failure does not belong to the document that is shown.
func TestStatusElementShowsOnlyFailuresOfItsAutoSave(t *testing.T) {
	t.Parallel()
	tab := deciding(t)
	tab.MustEval("bar.autosave = made([]); refuse(); await turn()", nil)
	assert.Empty(t, browser.Get[string](tab, "part('message').textContent"))
	tab.Quiet()
}
