package e2e

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// The page of notes has two documents in one runtime. Another tab asks for one of them, and the other one stays where it is.
func TestNotesHandOverOneDocumentAlone(t *testing.T) {
	t.Parallel()
	w := open(t, whole)
	notes := func() *browser.Tab {
		tab := w.Open(t, w.URL("/notes.html"))
		tab.MustEval(`
			const bar = name => document.querySelector('holdfast-status[data-document=' + name + ']').shadowRoot
			const who = name => bar(name).querySelector('[part=who]').textContent
			const field = name => document.querySelector('textarea[data-document=' + name + ']')
			const write = (name, text) => { field(name).value = text; field(name).dispatchEvent(new Event('input')) }`, nil)
		return tab
	}
	ann := notes()
	ann.WaitFor("who('shopping') === 'You edit.' && who('ideas') === 'You edit.' && !field('ideas').readOnly", browser.Limit)
	assert.Equal(t, 1, ann.Workers())
	ann.MustEval("write('shopping', 'Bread'); write('ideas', 'A boat')", nil)
	ann.WaitFor("['shopping', 'ideas'].every(name => bar(name).querySelector('[part~=save]').textContent.startsWith('Saved'))", browser.Limit)
	accessible(t, ann, "notes")
	if dir := os.Getenv("STATUS_SHOTS"); dir != "" {
		ann.Screenshot(dir+"/notes-light.png", 1000, 640, false)
		ann.Screenshot(dir+"/notes-phone-dark.png", 360, 900, true)
	}

	ben := notes()
	ben.WaitFor("field('shopping').value === 'Bread' && field('shopping').readOnly && field('ideas').value === 'A boat'", browser.Limit)
	ben.MustEval("bar('ideas').querySelector('[part~=ask]').click()", nil)
	ben.WaitFor("who('ideas') === 'You edit.' && !field('ideas').readOnly && field('shopping').readOnly", browser.Limit)
	ann.WaitFor("field('ideas').readOnly && !field('shopping').readOnly", browser.Limit)
	ben.Resize(320, 740)
	assert.LessOrEqual(t, browser.Get[int](ben, "document.documentElement.scrollWidth - innerWidth"), 0)
	ann.Quiet()
	ben.Quiet()
}
