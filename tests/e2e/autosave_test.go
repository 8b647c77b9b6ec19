package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
)

// editor opens a tab that edits, or will edit, with these options of initAutoSave.
func (w world) editor(t *testing.T, holdfast, options string) *browser.Tab {
	t.Helper()
	tab := w.tab(t, holdfast)
	beginEditing(tab, options)
	return tab
}

func beginEditing(tab *browser.Tab, options string) {
	tab.MustEval(endings.Editing, nil)
	tab.MustEval("await edit("+options+"); null", nil)
}

// named returns the options of an owner's Holdfast in a project.
func named(host, root, owner string) string {
	return fmt.Sprintf("{host: '%s', root: '%s', ownerName: '%s'}", host, root, owner)
}

func TestAutoSave(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) { testAutoSave(t, w, host) })
}

func testAutoSave(t *testing.T, w world, host string) {
	ann := w.editor(t, named(host, "doc "+host, "Ann"), "")
	assert.False(t, browser.Get[bool](ann, "autosave.readOnly"))
	assert.Equal(t, "idle", browser.Get[string](ann, "autosave.state().phase"))
	ann.WaitFor("heard('editable').length === 1", browser.Limit)
	assert.Equal(t, "debouncing", browser.Get[string](ann, "type('hello'), autosave.state().phase"))
	ann.WaitFor("heard('saved').length === 1", browser.Limit)
	assert.Equal(t, "hello", browser.Get[string](ann, "current()"))
	ann.WaitFor("autosave.state().phase === 'idle'", browser.Limit)
	assert.Equal(t, 0, browser.Get[int](ann, "autosave.state().pendingBytes"))
	g := browser.Get[map[string]any](ann, "heard('saved')[0]")
	assert.EqualValues(t, 5, g["bytes"])
	assert.Equal(t, true, g["current"])
	assert.Equal(t, g["token"], browser.Get[any](ann, "autosave.lease.token"))

	ben := w.editor(t, named(host, "doc "+host, "Ben"), "")
	assert.True(t, browser.Get[bool](ben, "autosave.readOnly"))
	ben.WaitFor("autosave.state().holder.ownerName === 'Ann'", browser.Limit)
	ben.WaitFor("heard('readonly').length === 1", browser.Limit)
	assert.Equal(t, "acquire-failed", browser.Get[string](ben, "heard('readonly')[0].reason"))
	assert.Equal(t, "hello", browser.Get[string](ben, "current()"))

	ann.MustEval("type(', world'); await autosave.dispose(); null", nil)
	ben.WaitFor("!autosave.readOnly", browser.Limit)
	ben.WaitFor("text === 'hello, world'", browser.Limit)
	ben.MustEval("text += '!'; autosave.markDirty(); result = await autosave.flushNow(); null", nil)
	assert.EqualValues(t, 13, browser.Get[int](ben, "result.bytes"))
	assert.Equal(t, 3, browser.Get[int](ben, "(await autosave.history()).length"))
	require.Empty(t, browser.Get[[]string](ben, "uncaught"))
	ann.Quiet()
	ben.Quiet()
}
