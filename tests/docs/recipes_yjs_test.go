package docs

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
)

var yjs = recipe{
	script: "yjs.js",
	policy: nonceForStyles,
	focus:  "document.querySelector('.cm-content').focus()",
	read:   "doc.getText('text').toString()",
}

const saves = "!autosave.readOnly"

func TestRecipeWithYjs(t *testing.T) {
	t.Parallel()
	parts := ingredients(t, recipes)
	parts[yjs.script] += "Object.assign(globalThis, { Y, doc });\n"
	k := set(t, yjs, parts)
	t.Run("two tabs edit", func(t *testing.T) { testYjsTabs(t, k) })
	t.Run("conflict", func(t *testing.T) { testYjsConflict(t, k) })
}

// Two tabs edit one document at once, and one of them saves. When it ends, the other one saves what both have typed.
func testYjsTabs(t *testing.T, k table) {
	first := k.open(t, local("tabs"))
	first.WaitFor(saves, browser.Limit)
	k.typed(first, "before")
	second := k.open(t, local("tabs"))
	shows(second, "Another tab saves.")
	k.typed(second, "second")
	first.WaitFor("shown().includes('second')", browser.Limit)
	k.typed(first, "first")
	second.WaitFor("shown().includes('first')", browser.Limit)
	assert.True(t, browser.Get[bool](second, "autosave.readOnly"), "one tab saves")

	leaves(first)
	second.WaitFor(saves, browser.Limit)
	k.typed(second, "last")
	leaves(second)
	next := k.open(t, local("tabs"))
	next.WaitFor("['before', 'second', 'first', 'last'].every((word) => shown().includes(word))", browser.Limit)
	next.Quiet()
	leaves(next)
}

// A tab that slept loses the lock, and its draft meets content that another page has saved: merge joins both.
func testYjsConflict(t *testing.T, k table) {
	tab := k.open(t, local("conflict"))
	tab.WaitFor(saves, browser.Limit)
	k.typed(tab, "before")
	tab.MustEval("await autosave.flushNow(); null", nil)
	theirs, err := json.Marshal(browser.Get[[]int](tab, `(() => {
		const theirs = new Y.Doc();
		Y.applyUpdate(theirs, Y.encodeStateAsUpdate(doc));
		theirs.getText("text").insert(0, "theirs");
		return [...Y.encodeStateAsUpdate(theirs)];
	})()`))
	require.NoError(t, err)
	k.typed(tab, "mine")
	k.WaitStored(t, "mine", browser.Limit)

	other := k.stealer(t, "conflict")
	other.MustEval("globalThis.other = await hf.initAutoSave(() => new Uint8Array("+string(theirs)+")); null", nil)
	tab.Suspend()
	other.MustEval("await other.requestEdit({force: true, graceMs: 100}); other.markDirty(); await other.flushNow(); null", nil)
	tab.Continue()
	shows(tab, "Another tab saves.")
	endings.Crashed.EndAfter(t, k.Browser, tab, "mine")
	leaves(other)
	next := k.open(t, local("conflict"))
	next.WaitFor("['before', 'mine', 'theirs'].every((word) => shown().includes(word))", browser.Limit)
	assert.Empty(t, browser.Get[[]string](next, "(await autosave.drafts()).map(({ id }) => id)"))
	leaves(next)
}
