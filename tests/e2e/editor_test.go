package e2e

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// axe is the accessibility checker, installed by npm.
const axe = "../../web/node_modules/axe-core/axe.min.js"

// editorTab opens the editor of the demo under a name.
func editorTab(t *testing.T, w world, name string) *browser.Tab {
	t.Helper()
	tab := w.Open(t, w.URL("/"))
	tab.MustEval(fmt.Sprintf(`
		const $ = id => document.getElementById(id)
		const kind = () => document.body.dataset.kind
		const write = more => { $('text').value += more; $('text').dispatchEvent(new Event('input', {bubbles: true})) }
		const people = () => [...$('tabs').querySelectorAll('.name')].map(e => e.firstChild.textContent.trim())
		const shown = () => [...$('history').querySelectorAll('button')].length
		$('name').value = '%s'; $('name').dispatchEvent(new Event('input', {bubbles: true})); $('name').dispatchEvent(new Event('change', {bubbles: true}))`, name), nil)
	tab.WaitFor("document.title.endsWith('· "+name+"') && ['holding', 'held'].includes(kind()) && people().includes('"+name+"')", browser.Limit)
	return tab
}

// accessible fails the test for axe's findings in both colour schemes.
func accessible(t *testing.T, tab *browser.Tab, what string) {
	t.Helper()
	script, err := os.ReadFile(axe)
	require.NoError(t, err, "run make test-e2e, which installs it")
	tab.MustEval(string(script)+";1", nil)
	for _, scheme := range []string{"light", "dark"} {
		tab.Scheme(scheme)
		found := browser.Get[[]string](tab, `(await axe.run(document, {resultTypes: ['violations']})).violations.map(v =>
			v.id + ': ' + v.help + ' ' + v.nodes.map(n => n.target.join(' ') + ' ' + n.failureSummary).join('; '))`)
		assert.Empty(t, found, "%s, %s", what, scheme)
	}
	tab.Scheme("")
}

// editors are the tabs of three users.
type editors struct{ ann, ben, cleo *browser.Tab }

// There are three tabs: one writes and two read along. The text and the turn go from tab to tab, using only what a
// user can press and read.
func TestEditor(t *testing.T) {
	t.Parallel()
	w := open(t, whole)
	e := editors{editorTab(t, w, "Ann"), editorTab(t, w, "Ben"), editorTab(t, w, "Cleo")}
	assert.Equal(t, "You write.", browser.Get[string](e.ann, "$('answer').textContent"))
	assert.Equal(t, "Ann writes.", browser.Get[string](e.ben, "$('answer').textContent"))
	assert.True(t, browser.Get[bool](e.ben, "$('text').readOnly"))
	e.cleo.WaitFor("people().join() === 'Ann,Ben,Cleo' && /second in line/.test($('explain').textContent)", browser.Limit)

	e.write(t)
	e.handOver(t)
	e.refuse()
	e.restore(t)
	e.hang(t)
	e.decide(t)
	e.closeWriter(t)
	for _, tab := range []*browser.Tab{e.ann, e.cleo} {
		tab.Quiet()
	}
}

// Ann writes, and the others read along.
func (e editors) write(t *testing.T) {
	t.Helper()
	e.ann.MustEval("const phases = []; new MutationObserver(() => phases.push($('phase').textContent)).observe($('phase'), {childList: true}); write('The quick brown fox.')", nil)
	e.ann.WaitFor("$('phase').textContent === 'saved' && shown() === 1", browser.Limit)
	assert.Contains(t, browser.Get[[]string](e.ann, "phases"), "typing")
	for _, tab := range []*browser.Tab{e.ben, e.cleo} {
		tab.WaitFor("$('text').value === 'The quick brown fox.' && shown() === 1", browser.Limit)
	}
	editorShots(t, map[string]*browser.Tab{"writing": e.ann, "reading": e.cleo})
	accessible(t, e.ann, "writing")
	accessible(t, e.ben, "reading")
}

// Ben asks for the turn with the keyboard, and writes.
func (e editors) handOver(t *testing.T) {
	t.Helper()
	e.ben.MustEval("$('ask').focus()", nil) // as a keyboard user
	press(e.ben, "ask")
	e.ben.WaitFor("kind() === 'holding' && document.activeElement === $('text')", browser.Limit)
	assert.Equal(t, 0, browser.Get[int](e.ben, "$('text').value.length - $('text').selectionStart"), "typing goes on behind the loaded text")
	e.ann.WaitFor("$('answer').textContent === 'Ben writes.' && /Ben writes/.test($('announce').textContent)", browser.Limit)
	e.ben.MustEval("$('text').value = 'The slow brown fox.'; write(' It sleeps.')", nil)
	press(e.ben, "flush")
	e.cleo.WaitFor("$('text').value.endsWith('sleeps.') && shown() === 2", browser.Limit)
}

// The writer may refuse.
func (e editors) refuse() {
	e.ben.MustEval("$('keep').click()", nil)
	press(e.ann, "ask")
	e.ann.WaitFor("/refused: its user wants to keep writing/.test($('outcome').textContent)", browser.Limit)
	e.ben.MustEval("$('keep').click()", nil)
}

// Ben shows a difference, and goes back to it.
func (e editors) restore(t *testing.T) {
	t.Helper()
	e.ben.MustEval("$('history').lastElementChild.querySelector('button').click()", nil)
	e.ben.WaitFor("$('compare-diff').querySelector('ins')?.textContent.includes('quick') && $('compare-diff').querySelector('del')?.textContent.includes('slow')", browser.Limit)
	editorShots(t, map[string]*browser.Tab{"difference": e.ben})
	accessible(t, e.ben, "difference")
	press(e.ben, "restore")
	e.ben.WaitFor("$('text').value === 'The quick brown fox.' && shown() === 3", browser.Limit)
	e.cleo.WaitFor("$('text').value === 'The quick brown fox.'", browser.Limit)
}

// A hanging tab loses its lock, and keeps its unsaved text.
func (e editors) hang(t *testing.T) {
	t.Helper()
	for _, tab := range []*browser.Tab{e.ann, e.ben, e.cleo} { // found beforehand, because typed text is saved half a second later
		_, err := tab.Renderer()
		require.NoError(t, err)
	}
	e.ben.WorkerEval(`{ // the text must not be saved before the process is suspended, however slow the machine is
		const real = SubtleCrypto.prototype.digest, awake = new Promise(wake => { globalThis.wake = wake })
		SubtleCrypto.prototype.digest = async function (...args) { await awake; return real.apply(this, args) } }`, nil)
	e.ben.MustEval("write(' Unsaved words.')", nil)
	e.ben.Suspend()
	press(e.cleo, "force")
	e.cleo.WaitFor("kind() === 'holding'", browser.Limit)
	e.cleo.MustEval("write(' Hers.')", nil)
	press(e.cleo, "flush")
	e.cleo.WaitFor("$('phase').textContent === 'saved'", browser.Limit)
	e.ben.Continue()
	e.ben.WorkerEval("wake()", nil)
}

// Ben decides between his unsaved text and that of Cleo, and the other tabs see it.
func (e editors) decide(t *testing.T) {
	t.Helper()
	e.ben.WaitFor("kind() === 'held' && !$('decide').hidden && $('decide-mine').textContent.includes('Unsaved words.') && $('decide-theirs').textContent.includes('Hers.')", browser.Limit)
	assert.Equal(t, "The quick brown fox.", browser.Get[string](e.ben, "$('decide-base').textContent"))
	editorShots(t, map[string]*browser.Tab{"deciding": e.ben})
	accessible(t, e.ben, "deciding")
	assert.True(t, browser.Get[bool](e.ben, "$('decide-use').ariaDisabled === 'true'"), "another tab writes")
	press(e.ben, "ask")
	e.ben.WaitFor("kind() === 'holding' && $('decide-use').ariaDisabled === 'false'", browser.Limit)
	e.cleo.WaitFor("!$('decide').hidden", browser.Limit)
	decideByKeyboard(t, e.ben)
	if err := e.ben.Wait("$('decide').hidden && $('text').value === 'The quick brown fox. Hers.\\nThe quick brown fox. Unsaved words.'", browser.Limit); err != nil {
		t.Fatal(err, browser.Get[[]any](e.ben, "[$('decide').hidden, $('text').value, $('decide-result').textContent, $('answer').textContent, kind(), $('outcome').textContent]"))
	}
	press(e.ben, "flush")
	e.cleo.WaitFor("$('decide').hidden", browser.Limit) // it sees the decision of another tab
}

// The next tab in the queue continues when the tab is closed.
func (e editors) closeWriter(t *testing.T) {
	t.Helper()
	e.ben.WaitFor("$('phase').textContent === 'saved'", browser.Limit)
	e.ben.MustEval("write(' Last words.')", nil)
	e.ben.Close()
	e.ann.WaitFor("kind() === 'holding' && $('text').value.endsWith('Unsaved words. Last words.')", browser.Limit)
	assert.True(t, browser.Get[bool](e.ann, "$('outcome').hidden"), "a draft that is saved meanwhile is no failure")
}

// decideByKeyboard moves through the choices with the arrow keys, back to both texts together, and decides.
func decideByKeyboard(t *testing.T, tab *browser.Tab) {
	t.Helper()
	chosen := "document.querySelector('input[name=decide-choice]:checked').value"
	tab.MustEval("document.querySelector('input[name=decide-choice]:checked').focus()", nil)
	assert.Equal(t, "both", browser.Get[string](tab, chosen))
	assert.Contains(t, browser.Get[string](tab, "$('decide-note').textContent"), "both versions")
	tab.Press("ArrowDown")
	tab.WaitFor(chosen+" === 'mine' && $('decide-result').querySelector('del')?.textContent.includes('Hers.')", browser.Limit)
	tab.Press("ArrowDown")
	tab.WaitFor(chosen+" === 'theirs' && $('decide-result').textContent === 'No difference.'", browser.Limit)
	tab.Press("ArrowDown")
	tab.WaitFor(chosen+" === 'both' && $('decide-result').querySelector('ins')?.textContent.includes('Unsaved words.')", browser.Limit)
	tab.MustEval("$('decide-use').focus()", nil)
	tab.Press("Enter")
}

func TestEditorFitsPhone(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := editorTab(t, w, "A name as long as the field lets one type")
	tab.MustEval("write('word '.repeat(300) + 'https://example.org/' + 'x'.repeat(200))", nil)
	tab.WaitFor("shown() === 1", browser.Limit)
	reader := editorTab(t, w, "Ben")
	for what, tab := range map[string]*browser.Tab{"writing": tab, "reading": reader} {
		tab.Resize(360, 740)
		tab.MustEval("$('history').querySelector('button').click()", nil)
		tab.WaitFor("!$('compare').hidden", browser.Limit)
		assert.LessOrEqual(t, browser.Get[int](tab, "document.documentElement.scrollWidth - innerWidth"), 0, what)
		tab.Quiet()
	}
}

func editorShots(t *testing.T, tabs map[string]*browser.Tab) {
	t.Helper()
	named := map[string]*browser.Tab{}
	for name, tab := range tabs {
		named["editor-"+name] = tab
	}
	screenshots(t, named)
}
