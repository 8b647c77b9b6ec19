package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// decider opens the demo's editor with the saved text "Ann", and with drafts of other pages that wait for a decision.
func decider(t *testing.T, w world, drafts ...string) *browser.Tab {
	t.Helper()
	tab := editorTab(t, w, "Ann")
	for _, draft := range drafts {
		other := w.tab(t, named("worker", "project", draft))
		other.MustEval("let text = ''; const made = await hf.initAutoSave(() => text); text = '"+draft+"'; made.markDirty(); await hf.close().catch(() => null)", nil)
		other.Close()
	}
	tab.MustEval("write('Ann')", nil) // the drafts have another base now
	tab.WaitFor("$('phase').textContent === 'saved' && shown() === 1 && !$('decide').hidden && $('decide-draft').length === "+fmt.Sprint(len(drafts))+" && !!$('decide-result').querySelector('ins')", browser.Limit)
	tab.MustEval("const choose = value => document.querySelector('input[value=' + value + ']').click()", nil)
	return tab
}

// decided waits until no draft waits any more, and returns the saved text.
func decided(tab *browser.Tab) string {
	tab.WaitFor("$('decide').hidden && $('phase').textContent === 'saved'", browser.Limit)
	return browser.Get[string](tab, "$('text').value")
}

// The user types, and decides before that is saved. The text has the draft and the typed words.
func TestEditorDecisionKeepsTypedText(t *testing.T) {
	t.Parallel()
	tab := decider(t, open(t, quick), "Ben")
	tab.MustEval("write(' typed'); $('decide-use').click()", nil)
	text := decided(tab)
	assert.Contains(t, text, "Ben")
	assert.Contains(t, text, "Ann typed")
	tab.Quiet()
}

// chooseAnother chooses another draft, that of the page chosen.
const chooseAnother = `
	const other = [...$('decide-draft').options].find(option => !option.selected)
	const chosen = /by (.*):/.exec(other.textContent)[1]
	other.selected = true
	$('decide-draft').dispatchEvent(new Event('change'))
`

// The user chooses another draft, and decides before it is shown. The text has the chosen draft.
func TestEditorDecidesAboutChosenDraft(t *testing.T) {
	t.Parallel()
	tab := decider(t, open(t, quick), "Ben", "Cleo")
	tab.MustEval(chooseAnother+"$('decide-use').click()", nil)
	tab.WaitFor("/one draft/.test($('decide-title').textContent) && $('phase').textContent === 'saved'", browser.Limit)
	assert.Contains(t, browser.Get[string](tab, "$('text').value"), browser.Get[string](tab, "chosen"))
	tab.Quiet()
}

// The user chooses another draft, and copies before it is shown. The clipboard has the chosen draft.
func TestEditorCopiesTheChosenDraft(t *testing.T) {
	t.Parallel()
	tab := decider(t, open(t, quick), "Ben", "Cleo")
	tab.MustEval(`
		globalThis.copied = undefined
		navigator.clipboard.writeText = async text => { copied = text }
	`+chooseAnother+"$('decide-copy').click()", nil)
	tab.WaitFor("copied !== undefined", browser.Limit)
	assert.Equal(t, browser.Get[string](tab, "chosen"), browser.Get[string](tab, "copied"))
	tab.Quiet()
}

// slowReading lets the page's AutoSaves return the content when the test calls the answers.
const slowReading = `
	const {createHoldfast} = await import('/holdfast.js')
	const spare = createHoldfast({root: 'spare'}), all = Object.getPrototypeOf(spare.createAutoSave(() => '')), {read} = all
	await spare.close()
	const answers = []
	all.read = async function (id) {
		const content = await read.call(this, id)
		if (id === 'current') await new Promise(done => answers.push(done))
		return content
	}
`

// The draft becomes the text, and the user types while a slow storage still reads. No read text replaces what was typed.
func TestEditorTypesAfterDecision(t *testing.T) {
	t.Parallel()
	tab := decider(t, open(t, quick), "Ben")
	tab.MustEval(slowReading+"choose('mine'); $('decide-use').click()", nil)
	tab.WaitFor("$('text').value === 'Ben' && !$('text').readOnly && $('decide').hidden", browser.Limit)
	tab.MustEval("write(' typed'); answers.forEach(answer => answer())", nil)
	tab.WaitFor("$('phase').textContent === 'saved'", browser.Limit)
	assert.Equal(t, "Ben typed", browser.Get[string](tab, "$('text').value"))
	tab.Quiet()
}

// The tab opens again while it reads a draft. That reading ends with an error, which is no failure for the user. The next runtime
// reads the draft again.
func TestEditorShowsDraftAfterOpeningAgain(t *testing.T) {
	t.Parallel()
	tab := decider(t, open(t, quick), "Ben")
	tab.MustEval(strings.Replace(slowReading, "const content =", `
		if (!globalThis.opened) await new Promise(done => answers.push(done))
		return`, 1)+"write(' again')", nil)
	tab.WaitFor("answers.length > 0 && $('phase').textContent === 'saved'", browser.Limit) // it reads the sides, because there is a new save
	tab.MustEval("$('name').value = 'Anna'; $('name').dispatchEvent(new Event('change', {bubbles: true}))", nil)
	tab.WaitFor("document.title === 'Writing · Anna'", browser.Limit)
	tab.MustEval("globalThis.opened = true; answers.forEach(answer => answer())", nil)
	tab.WaitFor("$('decide-theirs').textContent === 'Ann again'", browser.Limit)
	assert.True(t, browser.Get[bool](tab, "$('outcome').hidden"), "no action of the user has failed")
	tab.Quiet()
}

// A draft waits, and the tab that writes refuses. The refusal stays when that tab saves, which draws the draft again.
func TestEditorShowsRefusalBesideDraft(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	ann := decider(t, w, "Cleo")
	ben := editorTab(t, w, "Ben")
	ann.MustEval("$('keep').click()", nil)
	press(ben, "ask")
	ben.WaitFor("!$('outcome').hidden", browser.Limit)
	ann.MustEval("write(' again')", nil)
	ben.WaitFor("$('decide-theirs').textContent === 'Ann again'", browser.Limit)
	assert.Contains(t, browser.Get[string](ben, "$('outcome').hidden ? '' : $('outcome').textContent"), "refused")
	ben.Quiet()
}

// On a phone the whole decision is on the screen. On a laptop the three sides are beside each other.
func TestEditorDecisionFitsPhone(t *testing.T) {
	t.Parallel()
	tab := decider(t, open(t, quick), "Ben", "Cleo")
	const rows = "new Set([...document.querySelectorAll('.sides > div')].map(side => side.getBoundingClientRect().top)).size"
	tab.Resize(1200, 800)
	assert.Equal(t, 1, browser.Get[int](tab, rows))
	tab.Resize(1000, 800)
	assert.Contains(t, []int{1, 3}, browser.Get[int](tab, rows))
	tab.Resize(390, 800)
	assert.Equal(t, 3, browser.Get[int](tab, rows))
	assert.LessOrEqual(t, browser.Get[int](tab, "document.documentElement.scrollWidth - innerWidth"), 0)
	const pill = "document.querySelector('.pages [aria-current]').getBoundingClientRect().left"
	assert.GreaterOrEqual(t, browser.Get[float64](tab, pill), browser.Get[float64](tab, "document.querySelector('.brand').getBoundingClientRect().left"))
}
