package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// attacking follows editing: it says where a word is, as anybody can find out who opens the document.
const attacking = `
const places = async (word, saver = autosave) => {
  const has = async id => decode(await saver.read(id)).includes(word)
  const history = await saver.history()
  if (history.length > 0 && await has('current')) return 'content'
  for (const {id} of history) if (await has(id)) return 'history'
  return await drafted(word, saver) ? 'draft' : 'nowhere'
}
const drafted = async (word, saver = autosave) => {
  for (const {id} of await saver.drafts()) if (decode(await saver.read(id)).includes(word)) return true
  return false
}
const sleep = ms => new Promise(done => setTimeout(done, ms))
// full leaves no room for a single character in localStorage.
const full = () => {
  for (let size = 1 << 20, n = 0; size >= 1; size >>= 1)
    for (;; n++) try { localStorage.setItem('full' + n, 'x'.repeat(size)) } catch { break }
}
1`

// unsaved keeps AutoSave from saving by itself for as long as an attack takes.
const unsaved = "{debounceMs: 60000, idleMs: 60000}"

// attacked opens a tab that edits, or would, and can say where a word is.
func (w world) attacked(t *testing.T, holdfast, options string) *browser.Tab {
	t.Helper()
	tab := w.Open(t, w.URL("/blank"))
	beginAttacked(tab, holdfast, options)
	return tab
}

// beginAttacked readies the page that a tab shows.
func beginAttacked(tab *browser.Tab, holdfast, options string) {
	begin(tab, holdfast)
	tab.MustEval(editing, nil)
	tab.MustEval(attacking, nil)
	tab.MustEval("await edit("+options+"); null", nil)
}

// assertFound waits until the page edits and asserts where the word is then: in one of the places.
func assertFound(t *testing.T, tab *browser.Tab, word string, in ...string) {
	t.Helper()
	if err := tab.Wait("!autosave.readOnly", browser.Limit); err != nil {
		t.Errorf("the page does not become the editor: %v", err)
		return
	}
	wanted := "'" + strings.Join(in, "', '") + "'"
	looked := fmt.Sprintf("[%s].includes(await places('%s'))", wanted, word)
	if err := tab.Wait(looked, browser.Limit/3); err == nil { // a draft is committed a little later
		return
	}
	var place string
	err := tab.Eval(fmt.Sprintf("await places('%s')", word), &place)
	assert.NoError(t, err)
	assert.Contains(t, in, place, "where %q is", word)
}

// anywhere are the places in which a word is not lost.
var anywhere = []string{"content", "history", "draft"}

// setup is a host of the runtime with a strategy.
type setup struct{ host, strategy string }

func (s setup) String() string { return s.strategy + " " + s.host }

// project returns the options of a Holdfast of somebody in a project.
func (s setup) project(root, owner string) string {
	return fmt.Sprintf("{host: '%s', strategy: '%s', root: '%s', ownerName: '%s'}", s.host, s.strategy, root, owner)
}

// eachSetup runs a test in every host with every strategy; the short form runs it in two of the four, which have both of each.
func eachSetup(t *testing.T, test func(t *testing.T, s setup)) {
	for _, strategy := range []string{"web-lock", "file-lock"} {
		for _, host := range []string{"worker", "page"} {
			s := setup{host, strategy}
			if !*full && (host == "page") != (strategy == "file-lock") {
				continue
			}
			t.Run(s.String(), func(t *testing.T) { test(t, s) })
		}
	}
}

// word returns a word that no other document has.
func word() string { return fmt.Sprintf("word-%d", time.Now().UnixNano()) }

// eachRound numbers the rounds of an attack, in a project of its own each.
func eachRound(t *testing.T, short, long int, test func(t *testing.T, round int, root string)) {
	for round := range rounds(t, short, long) {
		root := strings.ReplaceAll(fmt.Sprintf("%s %d", strings.TrimPrefix(t.Name(), "TestNothingLost"), round), "/", " ")
		t.Run(fmt.Sprint("round ", round), func(t *testing.T) { test(t, round, root) })
	}
}

// departure is a way in which a page ends.
type departure struct {
	name  string
	leave func(w world, tab *browser.Tab)
	// abrupt ends run no handler of the page: only what is stored by then is kept.
	abrupt bool
}

var departures = []departure{
	{"closed", func(_ world, tab *browser.Tab) { tab.Close() }, false},
	{"reloaded", func(_ world, tab *browser.Tab) { tab.Reload() }, false},
	{"navigated", func(w world, tab *browser.Tab) { tab.Navigate(w.URL("/blank?elsewhere")) }, false},
	{"crashed", func(_ world, tab *browser.Tab) { tab.Crash() }, true},
}
