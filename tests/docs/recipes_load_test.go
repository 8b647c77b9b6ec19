package docs

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
)

func recipeOf(t *testing.T, script string) recipe {
	t.Helper()
	at := slices.IndexFunc(kitchen, func(r recipe) bool { return r.script == script })
	require.GreaterOrEqual(t, at, 0)
	return kitchen[at]
}

// The saved content is that of another editor, which this one cannot load. The user sees why, and what the user types
// is saved nevertheless.
func TestRecipeSavesAfterUnreadableContent(t *testing.T) {
	t.Parallel()
	parts := ingredients(t, recipes)
	for _, script := range []string{"tiptap.js", "excalidraw.js"} {
		t.Run(script, func(t *testing.T) {
			k := set(t, recipeOf(t, script), parts)
			former := k.stealer(t, "foreign")
			former.MustEval("const other = await hf.initAutoSave(() => 'no JSON'); other.markDirty(); await other.flushNow()", nil)
			leaves(former)
			tab := k.open(t, local("foreign"))
			tab.WaitFor("!autosave.readOnly && /JSON/.test(document.querySelector('#status').textContent)", browser.Limit)
			word := endings.Word()
			k.typed(tab, word)
			leaves(tab)
			next := k.open(t, local("foreign"))
			endings.AssertFound(t, next, word, "content")
			endings.AssertFound(t, next, "no JSON", "history")
			k.quiet(next)
			leaves(next)
		})
	}
}

// A page that lost the lock twice reads the content twice. The first reading ends last, and is not shown.
func TestRecipeShowsLastReading(t *testing.T) {
	t.Parallel()
	k := set(t, recipeOf(t, "textarea.js"), ingredients(t, recipes))
	tab := k.write(t, local("read"), "one")
	tab.MustEval(`
		await autosave.flushNow()
		globalThis.answers = []
		const all = Object.getPrototypeOf(autosave), {read} = all
		all.read = async function (id) {
			const content = await read.call(this, id)
			if (id === 'current') await new Promise(done => answers.push(done))
			return content
		}`, nil)
	other := k.open(t, local("read"))
	takes := func(n string) {
		t.Helper()
		other.MustEval("await autosave.requestEdit()", nil)
		tab.WaitFor("answers.length === "+n, browser.Limit)
	}
	takes("1")
	k.typed(other, ", two")
	other.MustEval("await autosave.flushNow()", nil)
	leaves(other)
	tab.WaitFor("!autosave.readOnly && shown().includes('two')", browser.Limit)
	text := browser.Get[string](tab, "shown()")
	other = k.open(t, local("read"))
	takes("2")
	tab.MustEval("answers[1](); await null; answers[0](); await new Promise(done => setTimeout(done))", nil)
	assert.Equal(t, text, browser.Get[string](tab, "shown()"))
	leaves(other)
	leaves(tab)
}

// A page does not say that its text is saved while there are newer words.
func TestRecipeSaysSavedOnlyThen(t *testing.T) {
	t.Parallel()
	k := set(t, recipeOf(t, "textarea.js"), ingredients(t, recipes))
	tab := k.write(t, local("said"), "one")
	tab.MustEval("await autosave.flushNow()", nil)
	shows(tab, "Saved.")
	k.typed(tab, ", two")
	shows(tab, "You edit.")
	leaves(tab)
}
