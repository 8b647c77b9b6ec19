package docs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

var excalidraw = recipe{
	script: "excalidraw.js",
	policy: func(policy string) string {
		return strings.Replace(policy, "img-src 'self' data:", "img-src 'self' data: blob:; font-src 'self'", 1)
	},
	click:  func(tab *browser.Tab) { beginText(tab, place(tab, "api.getSceneElements().length")) },
	text:   "shown()", // the page shows a picture of the text
	read:   "excalidraw.getTextFromElements(api.getSceneElements(), '\\n')",
	empty:  "api.updateScene({ elements: [] })",
	remove: "document.activeElement.blur(); root.unmount()", // Excalidraw fails when it is removed while a text is open
	theirs: `{"type":"excalidraw","version":2,"elements":[{"type":"text","id":"theirs","x":350,"y":20,"width":60,"height":25,"version":1,"versionNonce":1,"text":"theirs"}],"appState":{},"files":{}}`,
	merges: true,
	expose: "api, root",
	report: `^Loading the font '.*' violates the following Content Security Policy directive: "font-src 'self'"`,
}

// place returns the place of a row in the drawing.
func place(tab *browser.Tab, row string) browser.Point {
	return browser.Get[browser.Point](tab, "(({ x, y }) => ({ X: x + 350, Y: y + 120 + 35 * ("+row+") }))(document.querySelector('canvas.interactive').getBoundingClientRect())")
}

// beginText begins a text of the drawing, or opens the one at this place, if the page may edit.
func beginText(tab *browser.Tab, at browser.Point) {
	tab.Press("Escape") // ends the text before
	tab.Click(at, 2)
	tab.WaitFor("!document.querySelector('#ask').hidden || document.activeElement.matches('textarea.excalidraw-wysiwyg')", browser.Limit)
}

// drawRectangle draws a rectangle beside the texts.
func drawRectangle(tab *browser.Tab) {
	tab.Press("Escape")
	tool := "document.querySelector('label:has([data-testid=toolbar-rectangle])').getBoundingClientRect()"
	tab.Click(browser.Get[browser.Point](tab, "(({ x, y, width, height }) => ({ X: x + width / 2, Y: y + height / 2 }))("+tool+")"), 1)
	tab.WaitFor("api.getAppState().activeTool.type === 'rectangle'", browser.Limit)
	from := place(tab, "0")
	tab.Drag(browser.Point{X: from.X + 120, Y: from.Y}, browser.Point{X: from.X + 220, Y: from.Y + 60})
	tab.WaitFor(types+".includes('rectangle') && api.getAppState().newElement === null", browser.Limit)
}

const (
	types    = "api.getSceneElements().map(({ type }) => type).sort().join()"
	noDrafts = "document.querySelector('#drafts').childElementCount === 0"
	flush    = "await autosave.flushNow(); null"
	force    = "await autosave.requestEdit({ force: true, graceMs: 100 }); null"
)

func TestRecipeWithExcalidraw(t *testing.T) {
	t.Parallel()
	k := set(t, excalidraw, ingredients(t, recipes))
	t.Run("drawing", func(t *testing.T) { testDrawing(t, k) })
	t.Run("only changes are saved", func(t *testing.T) { testOnlyChanges(t, k) })
	t.Run("handing over an open text", func(t *testing.T) { testOpenText(t, k) })
	t.Run("handing over an empty text", func(t *testing.T) { testEmptyText(t, k) })
	t.Run("conflict", func(t *testing.T) { testScenesJoined(t, k) })
	t.Run("conflict in one element", func(t *testing.T) { testElementClash(t, k) })
}

// pasteImage pastes a picture of one pixel.
const pasteImage = `
	const picture = Uint8Array.from(atob("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="), (char) => char.charCodeAt(0));
	const clipboardData = new DataTransfer();
	clipboardData.items.add(new File([picture], "pixel.png", { type: "image/png" }));
	document.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true }));
	null`

// scene is an expression for all that is saved of the elements and images.
const scene = "JSON.stringify([api.getSceneElements().map(({ id, versionNonce }) => [id, versionNonce]), Object.values(api.getFiles()).map(({ dataURL }) => dataURL)])"

// A drawing with an image comes back as it was, after its editor was removed in the task that ended the AutoSave.
func testDrawing(t *testing.T, k table) {
	tab := k.write(t, local("drawing"), "a text")
	drawRectangle(tab)
	tab.Click(place(tab, "4"), 1) // the image goes where the pointer is
	tab.MustEval(pasteImage, nil)
	tab.MustEval("api.updateScene({ appState: { viewBackgroundColor: '#ffc9c9' } }); null", nil)
	tab.WaitFor(types+" === 'image,rectangle,text' && api.getSceneElements().some(({ fileId }) => api.getFiles()[fileId])", browser.Limit)
	before := browser.Get[string](tab, scene)
	tab.MustEval("{ const saved = autosave.dispose(); root.unmount(); await saved; } null", nil)
	assert.Zero(t, browser.Get[int](tab, "document.querySelector('#text').childElementCount"), "the editor is gone")
	k.quiet(tab)
	leaves(tab)

	next := k.open(t, local("drawing"))
	shows(next, "You edit.")
	next.WaitFor(types+" === 'image,rectangle,text' && api.getAppState().viewBackgroundColor === '#ffc9c9'", browser.Limit)
	after := browser.Get[string](next, scene)
	assert.Equal(t, before, after)
	k.quiet(next)
	leaves(next)
}

// A selection, a tool and a loaded drawing are no changes; a background is one.
func testOnlyChanges(t *testing.T, k table) {
	tab := k.open(t, local("changes"))
	shows(tab, "You edit.")
	drawRectangle(tab)
	tab.MustEval(flush, nil)
	leaves(tab)
	tab = k.open(t, local("changes"))
	shows(tab, "You edit.")
	tab.WaitFor(types+" === 'rectangle'", browser.Limit)
	tab.MustEval("globalThis.marks = 0; const mark = autosave.markDirty.bind(autosave); autosave.markDirty = () => { marks++; mark(); }; let reports = 0; api.onChange(() => { reports++; }); null", nil)
	corner := place(tab, "0")
	tab.Click(browser.Point{X: corner.X + 120, Y: corner.Y + 30}, 1) // the left edge of the rectangle
	tab.WaitFor("Object.keys(api.getAppState().selectedElementIds).length === 1 && reports > 0", browser.Limit)
	assert.Zero(t, browser.Get[int](tab, "marks"), "a selection is no change")
	assert.Len(t, browser.Get[[]string](tab, "(await autosave.history()).map(({ id }) => id)"), 1)
	tab.MustEval("api.updateScene({ appState: { viewBackgroundColor: '#ffc9c9' } }); null", nil)
	tab.WaitFor("marks === 1", browser.Limit)
	leaves(tab)
}

// A page hands over while a text is open in it, and nothing that is typed there afterwards gets in.
func testOpenText(t *testing.T, k table) {
	first := k.write(t, local("open"), "first")
	second := k.open(t, local("open"))
	shows(second, "Another tab edits.")
	first.WaitFor("document.querySelector('textarea.excalidraw-wysiwyg') !== null", browser.Limit)
	second.MustEval("document.querySelector('#ask').click()", nil)
	shows(second, "You edit.")
	shows(first, "Another tab edits.")
	first.Type(" not allowed")
	first.Click(place(first, "0"), 2)
	first.Type(" not allowed")
	assert.Equal(t, "first", browser.Get[string](first, "shown()"), "a read-only page takes nothing")
	k.typed(second, "second")
	second.MustEval(flush, nil)
	second.WaitFor("shown() === 'first\\nsecond' && "+noDrafts, browser.Limit)
	for _, tab := range []*browser.Tab{first, second} {
		assert.Empty(t, browser.Get[[]string](tab, "(await autosave.drafts()).map(({ id }) => id)"))
		k.quiet(tab)
		leaves(tab)
	}
}

// A text without a letter disappears when the page hands over. That is no draft.
func testEmptyText(t *testing.T, k table) {
	first := k.write(t, local("empty"), "first")
	k.begin(first)
	second := k.open(t, local("empty"))
	second.MustEval("document.querySelector('#ask').click()", nil)
	shows(second, "You edit.")
	shows(first, "Another tab edits.")
	first.WaitFor("shown() === 'first' && api.getSceneElements().length === 1", browser.Limit)
	assert.Empty(t, browser.Get[[]string](first, "(await autosave.drafts()).map(({ id }) => id)"))
	leaves(first)
	leaves(second)
}

// apart returns two pages with changes to the same drawing. The first one was suspended with unsaved changes, the second
// one took over meanwhile, and has saved.
func (k table) apart(t *testing.T, root string, before func(*browser.Tab), mine, theirs func(*browser.Tab)) (first, second *browser.Tab) {
	t.Helper()
	first = k.open(t, local(root))
	shows(first, "You edit.")
	before(first)
	first.MustEval(flush, nil)
	second = k.open(t, local(root))
	shows(second, "Another tab edits.")
	mine(first)
	first.Suspend()
	second.MustEval(force, nil)
	shows(second, "You edit.")
	theirs(second)
	second.MustEval(flush, nil)
	first.Continue()
	shows(first, lost)
	return first, second
}

// Two pages changed different elements: the drawing has the changes of both.
func testScenesJoined(t *testing.T, k table) {
	first, second := k.apart(t, "joined", func(tab *browser.Tab) {
		k.typed(tab, "kept")
		k.typed(tab, "deleted")
	}, func(tab *browser.Tab) {
		k.typed(tab, "mine")
	}, func(tab *browser.Tab) {
		drawRectangle(tab)
		at := place(tab, "1")
		tab.Click(browser.Point{X: at.X + 10, Y: at.Y}, 1)
		tab.WaitFor("Object.keys(api.getAppState().selectedElementIds).length === 1", browser.Limit)
		tab.Press("Delete")
		tab.WaitFor("shown() === 'kept'", browser.Limit)
	})
	leaves(second)
	shows(first, "You edit.")
	first.WaitFor("shown() === 'kept\\nmine' && "+types+" === 'rectangle,text,text' && "+noDrafts, browser.Limit)
	leaves(first)
	next := k.open(t, local("joined"))
	next.WaitFor("shown() === 'kept\\nmine' && "+types+" === 'rectangle,text,text' && "+noDrafts, browser.Limit)
	k.quiet(next)
	leaves(next)
}

// Two pages changed one element: the user decides, and nothing is lost before.
func testElementClash(t *testing.T, k table) {
	retype := func(text string) func(*browser.Tab) {
		return func(tab *browser.Tab) {
			at := place(tab, "0")
			beginText(tab, browser.Point{X: at.X + 10, Y: at.Y})
			tab.Type(text) // over the selected text
			tab.WaitFor(fmt.Sprintf("shown() === '%s'", text), browser.Limit)
		}
	}
	first, second := k.apart(t, "clash", retype("before"), retype("mine"), retype("theirs"))
	leaves(second)
	shows(first, "You edit.")
	first.WaitFor("shown() === 'theirs' && document.querySelector('#drafts').textContent.includes('1 elements. mine')", browser.Limit)
	first.MustEval("document.querySelector('#drafts button').click()", nil)
	first.WaitFor("shown() === 'mine' && "+noDrafts, browser.Limit)
	k.quiet(first)
	leaves(first)
}
