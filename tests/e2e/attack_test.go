package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
)

// attacking follows editing: it says where a word is, and fills localStorage.
const attacking = endings.Script + `
const sleep = ms => new Promise(done => setTimeout(done, ms))
// full leaves no room for a single character in localStorage.
const full = () => {
  for (let size = 1 << 20, n = 0; size >= 1; size >>= 1)
    for (;; n++) try { localStorage.setItem('full' + n, 'x'.repeat(size)) } catch { break }
}
1`

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

// assertLeft opens a document anew and asserts where a word is: in one of the places.
func (w world) assertLeft(t *testing.T, holdfast, options, word string, in ...string) {
	t.Helper()
	next := w.attacked(t, holdfast, options)
	endings.AssertFound(t, next, word, in...)
	next.MustEval("await hf.close(); null", nil)
	next.Spare()
}

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

// eachRound numbers the rounds of an attack, in a project of its own each.
func eachRound(t *testing.T, short, long int, test func(t *testing.T, round int, root string)) {
	for round := range rounds(t, short, long) {
		root := strings.ReplaceAll(fmt.Sprintf("%s %d", strings.TrimPrefix(t.Name(), "TestNothingLost"), round), "/", " ")
		t.Run(fmt.Sprint("round ", round), func(t *testing.T) { test(t, round, root) })
	}
}

// eachEnding runs a test with every way in which a page ends, and each in some rounds.
func eachEnding(t *testing.T, test func(t *testing.T, end endings.Ending, round int, root string)) {
	for _, end := range endings.All {
		t.Run(end.Name, func(t *testing.T) {
			eachRound(t, 1, 20, func(t *testing.T, round int, root string) { test(t, end, round, root) })
		})
	}
}
