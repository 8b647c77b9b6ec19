package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A pinned generation stays, whatever is saved after it, also for later tabs.
func TestAutoSavePin(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		tab := w.editor(t, named(host, "pins "+host, "Ann"), "{maxGenerations: 3, keep: 'latest'}")
		name := `before "the" rewrite \u0000\n日本語`
		tab.MustEval(`
			const save = async more => { text = more; autosave.markDirty(); return autosave.flushNow() }
			const first = await save('one')
			await save('two')
			const pinned = await autosave.pin(first.id, '`+name+`')
			const newest = await autosave.pin('current', 'now')
			for (const more of ['three', 'four', 'five', 'six']) await save(more)
			const list = async () => (await autosave.history()).map(g => g.name ?? '')
			null`, nil)
		assert.True(t, browser.Get[bool](tab, "pinned.id === first.id && pinned.name === '"+name+"' && pinned.ownerName === 'Ann' && !pinned.current"))
		assert.True(t, browser.Get[bool](tab, "newest.name === 'now' && newest.current"))
		assert.True(t, browser.Get[bool](tab, "!('name' in first) && !('draft' in pinned)"))
		assert.Equal(t, []string{"six", "five", "four", "two", "one"},
			browser.Get[[]string](tab, "Promise.all((await autosave.history()).map(async g => decode(await autosave.read(g.id))))"))
		assert.True(t, browser.Get[bool](tab, "JSON.stringify(await list()) === JSON.stringify(['', '', '', 'now', '"+name+"'])"))
		for call, code := range map[string]string{
			"autosave.pin('1-1', 'x')":                "not-found",
			"autosave.pin(first.id, 'x'.repeat(257))": "invalid-argument",
			"autosave.pin(first.id)":                  "invalid-argument",
			"autosave.pin(first.id, 7)":               "invalid-argument",
		} {
			assert.Equal(t, code, browser.Get[event](tab, "await failure("+call+")")["code"], call)
		}

		other := w.editor(t, named(host, "pins "+host, "Ben"), "{maxGenerations: 3}")
		assert.Equal(t, "now", browser.Get[string](other, "(await autosave.history())[3].name"))
		assert.Equal(t, "read-only", browser.Get[event](other, "await failure(autosave.pin('current', 'mine'))")["code"])
		tab.MustEval("await autosave.pin(first.id, ''); await save('seven'); await autosave.dispose(); null", nil)
		assert.Equal(t, []string{"", "", "", "now"}, browser.Get[[]string](tab, "await (async () => { const a = await hf.initAutoSave(() => text); const names = (await a.history()).map(g => g.name ?? ''); await a.dispose(); return names })()"))
		tab.Quiet()
	})
}

// Twenty generations include the first one.
func TestAutoSaveKeep(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := w.editor(t, named("worker", "keep", "Ann"), "{maxGenerations: 5}")
	tab.MustEval(`const saved = []
		for (let n = 0; n < 30; n++) { text = 'n' + n; autosave.markDirty(); saved.push((await autosave.flushNow()).id) }
		const kept = (await autosave.history()).map(g => saved.indexOf(g.id)); null`, nil)
	kept := browser.Get[[]int](tab, "kept")
	assert.Len(t, kept, 5)
	assert.Equal(t, []int{29, 28, 0}, []int{kept[0], kept[1], kept[4]})
	assert.Equal(t, "invalid-argument", browser.Get[event](tab, "await failure(hf.initAutoSave(() => text, {keep: 'all'}))")["code"])
	tab.Quiet()
}
