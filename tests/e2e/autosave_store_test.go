package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
)

// Saved text comes back byte for byte, within the limits of number and size.
func TestAutoSaveHistory(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		tab := w.editor(t, named(host, "history "+host, "Ann"), "{maxGenerations: 5, keep: 'latest'}")
		tab.MustEval(`
			const save = async more => { text = more; autosave.markDirty(); return autosave.flushNow() }
			const saved = []
			for (const more of ['', 'one', '日本語 🦀 e\u0301 \u202e', 'three', 'four', 'five', 'six']) saved.push(await save(more))
			const history = await autosave.history()`, nil)
		assert.Equal(t, []string{"six", "five", "four", "three", "日本語 🦀 e\u0301 \u202e"},
			browser.Get[[]string](tab, "Promise.all(history.map(async g => decode(await autosave.read(g.id))))"))
		assert.Equal(t, []bool{true, false, false, false, false}, browser.Get[[]bool](tab, "history.map(g => g.current)"))
		assert.True(t, browser.Get[bool](tab, "history.every((g, i) => g.id === saved.at(-1 - i).id && /^[0-9a-f]{64}$/.test(g.sha256))"))
		gone := browser.Get[event](tab, "await failure(autosave.read(saved[0].id))")
		assert.Equal(t, "not-found", gone["code"])

		// Text that was typed before a restore is kept.
		tab.MustEval("type(', and more'); result = decode(await autosave.restore(history[3].id)); null", nil)
		assert.Equal(t, "three", browser.Get[string](tab, "result"))
		assert.Equal(t, []string{"three", "six, and more", "six", "five", "four"},
			browser.Get[[]string](tab, "Promise.all((await autosave.history()).map(async g => decode(await autosave.read(g.id))))"))

		// These are all kinds of snapshots.
		tab.MustEval(`
			await autosave.dispose()
			let kind = {a: [1, 'ü'], at: new Date(0)}
			told.length = 0
			await edit({}, async () => kind)
			while (heard('editable').length === 0) await autosave.history() // the content comes in a separate task
			autosave.markDirty(); await autosave.flushNow(); null`, nil)
		assert.Equal(t, `{"a":[1,"ü"],"at":"1970-01-01T00:00:00.000Z"}`, browser.Get[string](tab, "current()"))
		tab.MustEval("kind = new Uint8Array([0, 255, 254, 10]); autosave.markDirty(); await autosave.flushNow(); null", nil)
		assert.Equal(t, []int{0, 255, 254, 10}, browser.Get[[]int](tab, "[...await autosave.read('current')]"))
		assert.Equal(t, 4, browser.Get[int](tab, "kind.length"), "it is still the page's")
		tab.MustEval(`kind = 'a whole pair \u{1f980}'; autosave.markDirty(); result = await autosave.flushNow(); null`, nil)
		assert.Equal(t, "a whole pair 🦀", browser.Get[string](tab, "current()"))
		assert.Equal(t, len("a whole pair 🦀"), browser.Get[int](tab, "result.bytes"))
		for _, bad := range []string{"undefined", "7", "() => 1", `'half a pair \ud83d'`} {
			tab.MustEval("kind = "+bad+"; autosave.markDirty(); null", nil)
			assert.Equal(t, "snapshot-failed", browser.Get[event](tab, "await failure(autosave.flushNow())")["code"], bad)
			assert.Equal(t, "snapshot-failed", browser.Get[string](tab, "autosave.state().lastError.code"))
		}
		tab.MustEval("kind = 'good again'; await autosave.flushNow(); await autosave.dispose(); null", nil)
		tab.MustEval(`const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('history `+host+`')
			await folder.removeEntry('autosave', {recursive: true}); null`, nil) // none of its files is open
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
		tab.Quiet()
	})
}

func TestAutoSaveLargeTextsAndManyMarks(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "large " + host
		tab := w.editor(t, named(host, root, "Ann"), "")
		tab.MustEval("for (let i = 0; i < 10_000; i++) { text += 'x'; autosave.markDirty() } null", nil)
		tab.WaitFor("autosave.state().phase === 'idle' && heard('saved').length", browser.Limit)
		assert.LessOrEqual(t, browser.Get[int](tab, "heard('saved').length"), 2)
		assert.Equal(t, 10_000, browser.Get[int](tab, "heard('saved').at(-1).bytes"))

		tab.MustEval("text = '0123456789abcdef'.repeat(20 * 65536); autosave.markDirty(); result = await autosave.flushNow(); null", nil)
		assert.Equal(t, 20<<20, browser.Get[int](tab, "result.bytes"))
		assert.True(t, browser.Get[bool](tab, "(await current()) === text"))
		next := w.editor(t, named(host, root, "Ben"), "")
		tab.MustEval("await hf.close(); null", nil)
		next.WaitFor("!autosave.readOnly && text.length === 20 * 1048576", browser.Limit)
		next.MustEval("await hf.close(); null", nil)
	})
}

// A page learns within a tenth of a second that it is read-only or may write.
func TestAutoSaveReportsAtOnce(t *testing.T) {
	w := open(t, quick)
	a, b := w.editor(t, named("worker", "at once", "Ann"), ""), w.editor(t, named("worker", "at once", "Ben"), "")
	for round := range 10 {
		editor, asker := a, b
		if round%2 == 1 {
			editor, asker = b, a
		}
		editor.MustEval("told.length = 0; null", nil)
		asker.MustEval("told.length = 0; await autosave.requestEdit(); null", nil)
		editor.WaitFor("heard('readonly').length === 1", browser.Limit)
		asker.WaitFor("heard('editable').length === 1", browser.Limit)
		editable := browser.Get[float64](asker, "heard('editable')[0].seen")
		readonly := browser.Get[float64](editor, "heard('readonly')[0].seen")
		took := readonly - editable
		t.Logf("read-only %.1f ms after the other could edit", took)
		require.Less(t, took, browser.Prompt)
	}
}

func TestAutoSaveOptions(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := w.tab(t, named("worker", "options", "Ann"))
	tab.MustEval(endings.Editing, nil)
	for call, word := range map[string]string{
		"hf.initAutoSave()":                                   "snapshot",
		"hf.initAutoSave(() => '', null)":                     "options",
		"hf.initAutoSave(() => '', {debounceMs: -1})":         "debounceMs",
		"hf.initAutoSave(() => '', {debounceMs: '1'})":        "debounceMs",
		"hf.initAutoSave(() => '', {idleMs: 1})":              "idleMs",
		"hf.initAutoSave(() => '', {maxGenerations: 1.5})":    "maxGenerations",
		"hf.initAutoSave(() => '', {maxBytes: NaN})":          "maxBytes",
		"hf.initAutoSave(() => '', {enabled: 1})":             "enabled",
		"hf.initAutoSave(() => '', {lock: {mode: 'shared'}})": "mode",
		"hf.initAutoSave(() => '', {lock: {ttlMs: 'x'}})":     "lock.ttlMs",
	} {
		got := browser.Get[event](tab, "await failure("+call+")")
		assert.Equal(t, "invalid-argument", got["code"], "%s: %v", call, got)
		assert.Contains(t, got["message"], word, call)
	}
	tab.MustEval("await edit({enabled: false}); type('x'); null", nil)
	assert.Equal(t, "disabled", browser.Get[string](tab, "autosave.state().phase"))
	assert.Equal(t, "disabled", browser.Get[event](tab, "await failure(autosave.flushNow())")["code"])
	assert.Equal(t, 0, browser.Get[int](tab, "(await locks()).held"))
	tab.MustEval("await edit({standby: false}); null", nil)
	assert.False(t, browser.Get[bool](tab, "autosave.readOnly"))
	assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
	tab.Quiet()
}

// The lock of AutoSave may be inside a lease that the page already holds.
func TestAutoSaveWithinALease(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		tab := w.tab(t, named(host, "within "+host, "Ann"))
		tab.MustEval(endings.Editing, nil)
		tab.MustEval(`
			const outer = await hf.acquireProjectLock({path: ['book']})
			await edit({path: ['book', 'one'], lock: {within: outer}})
			type('under the lease')
			await autosave.flushNow()`, nil)
		assert.False(t, browser.Get[bool](tab, "autosave.readOnly"), "it does not wait for the lease of its own page")
		assert.True(t, browser.Get[bool](tab, "autosave.lease.within === outer.leaseId"))
		tab.MustEval("await autosave.dispose(); await outer.release(); null", nil)
		for _, no := range []string{"outer", "5", "null", "{}"} {
			got := browser.Get[event](tab, "await failure(hf.initAutoSave(() => '', {path: ['book', 'one'], lock: {within: "+no+"}}))")
			assert.Equal(t, "invalid-argument", got["code"], no)
			assert.Contains(t, got["message"], "lock.within must be a lease", no)
		}
		tab.Quiet()
	})
}
