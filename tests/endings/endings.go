// Package endings ends pages in every way and finds the text that they left, for tests that no typed text is lost.
package endings

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// An Ending is a way in which a page ends.
type Ending struct {
	Name string
	// End ends the page. The site has a page /blank.
	End func(tab *browser.Tab)
	// Abrupt endings run no handler of the page: only text that is already stored is kept.
	Abrupt bool
}

// All lists all endings of a page.
var All = []Ending{
	{"closed", (*browser.Tab).Close, false},
	{"reloaded", (*browser.Tab).Reload, false},
	{"navigated", func(tab *browser.Tab) { tab.Navigate(browser.Get[string](tab, "location.origin") + "/blank?elsewhere") }, false},
	{"crashed", (*browser.Tab).Crash, true},
}

// Crashed is the ending of a page whose process dies.
var Crashed = All[3]

var closed = All[0]

// EndAfter ends a page in which a word was typed. An abrupt ending waits until the word is stored.
func (e Ending) EndAfter(t *testing.T, b *browser.Browser, tab *browser.Tab, word string) {
	t.Helper()
	if e.Abrupt {
		b.WaitStored(t, word, browser.Limit)
	}
	e.End(tab)
}

// Unsaved are the options of an AutoSave that does not save on its own during a test.
const Unsaved = "{debounceMs: 60000, idleMs: 60000}"

// Anywhere lists the places in which a word is not lost.
var Anywhere = []string{"content", "history", "draft"}

// Word returns a word that no other document contains.
func Word() string { return fmt.Sprintf("word-%d", time.Now().UnixNano()) }

// An Asker is a page that can evaluate scripts, which may use await.
type Asker interface {
	Eval(expression string, out any) error
	Wait(expression string, limit time.Duration) error
}

// AssertFound waits until a page with Script edits, and asserts that the word is then in one of the places.
func AssertFound(t *testing.T, tab Asker, word string, in ...string) {
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
