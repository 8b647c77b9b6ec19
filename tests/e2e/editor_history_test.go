package e2e

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// historian opens the editor of the demo, and saves these texts.
func historian(t *testing.T, w world, texts ...string) *browser.Tab {
	t.Helper()
	tab := editorTab(t, w, "Ann")
	for i, text := range texts {
		tab.MustEval("$('text').value = ''; write('"+text+"')", nil)
		press(tab, "flush")
		tab.WaitFor("shown() === "+strconv.Itoa(i+1), browser.Limit)
	}
	tab.MustEval("const saves = () => [...$('history').querySelectorAll('button')]", nil)
	return tab
}

// The user chooses one save after another, and the storage answers in the other order. The page shows the save that it restores.
func TestEditorComparesChosenSave(t *testing.T) {
	t.Parallel()
	tab := historian(t, open(t, quick), "one", "two", "three")
	tab.MustEval(strings.Replace(slowReading, "id === 'current'", "true", 1), nil)
	tab.MustEval("{ const [, two, one] = saves(); one.click(); two.click() }", nil)
	tab.WaitFor("answers.length === 2", browser.Limit)
	tab.MustEval("answers[1](); await null", nil)
	tab.WaitFor("$('compare-diff').querySelector('ins')?.textContent === 'two'", browser.Limit)
	tab.MustEval("answers[0](); await new Promise(done => setTimeout(done))", nil)
	assert.Equal(t, "two", browser.Get[string](tab, "$('compare-diff').querySelector('ins').textContent"))
	press(tab, "restore")
	tab.WaitFor("$('text').value === 'two' && $('phase').textContent === 'saved'", browser.Limit)
	tab.Quiet()
}

// The history reaches back for weeks, so it names the day of a save that is not of today.
func TestEditorHistoryNamesTheDay(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := historian(t, w, "one")
	assert.Regexp(t, `^\d\d:\d\d:\d\d$`, browser.Get[string](tab, "saves()[0].querySelector('time').textContent"))
	later := w.Open(t, w.URL("/blank"))
	later.Before(`{ const real = Date; globalThis.Date = class extends real { constructor(...of) { super(...(of.length ? of : [real.now() + 400 * 864e5])) } } }`)
	later.Navigate(w.URL("/"))
	later.WaitFor("document.querySelector('#history button')", browser.Limit)
	assert.Regexp(t, `^\d?\d \w+ 20\d\d \d\d:\d\d:\d\d$`, browser.Get[string](later, "document.querySelector('#history time').textContent"))
	later.MustEval("document.querySelector('#history button').click(); null", nil)
	later.WaitFor("/^What restoring \\d?\\d \\w+ 20\\d\\d \\d\\d:\\d\\d:\\d\\d would change$/.test(document.querySelector('#compare-title').textContent)", browser.Limit)
	later.Resize(390, 800)
	assert.LessOrEqual(t, browser.Get[int](later, "document.documentElement.scrollWidth - innerWidth"), 0)
}

// The focus of a user of the keyboard stays where the user was, and is never lost to the page.
func TestEditorKeepsFocus(t *testing.T) {
	t.Parallel()
	w := open(t, whole)
	ann := decider(t, w, "Cleo")
	ben := editorTab(t, w, "Ben")
	push := func(tab *browser.Tab, element string) {
		t.Helper()
		tab.Show()
		tab.MustEval(element+".focus(); null", nil)
		tab.Press("Enter")
	}
	const frame = "await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))), " // a hidden or disabled element loses the focus then
	focused := func(tab *browser.Tab) string { return browser.Get[string](tab, frame+"document.activeElement.id") }

	ann.MustEval("$('keep').click()", nil)
	push(ben, "$('ask')")
	ben.WaitFor(frame+"!$('outcome').hidden", browser.Limit)
	assert.Equal(t, "ask", focused(ben), "after a refusal")
	ann.MustEval("$('keep').click()", nil)
	push(ben, "$('ask')")
	ben.WaitFor(frame+"kind() === 'holding'", browser.Limit)
	assert.Equal(t, "text", focused(ben), "after a handover")

	push(ben, "$('history').querySelector('button')")
	ben.WaitFor("!$('compare').hidden", browser.Limit)
	push(ben, "$('compare-close')")
	assert.NotEmpty(t, browser.Get[string](ben, frame+"document.activeElement.dataset.id ?? ''"), "the save that was compared")
	ben.MustEval("$('decide-use').focus()", nil)
	push(ann, "$('ask')")
	ann.WaitFor(frame+"kind() === 'holding'", browser.Limit)
	ben.Show()
	ben.WaitFor("kind() !== 'holding'", browser.Limit)
	assert.Equal(t, "decide-use", focused(ben), "while another tab writes")
	push(ben, "$('ask')")
	ben.WaitFor(frame+"kind() === 'holding'", browser.Limit)
	push(ben, "$('decide-use')")
	ben.WaitFor("$('decide').hidden", browser.Limit)
	assert.Equal(t, "text", focused(ben), "after a decision")
}
