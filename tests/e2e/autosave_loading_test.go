package e2e

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
)

// A user that discards a draft does not discard text that was typed after the draft was sealed.
func TestDiscardKeepsTextTypedSince(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "discard " + host
		// The journal waits, because it would otherwise reopen the sealed draft during the discard.
		ann, ben := w.attacked(t, named(host, root, "Ann"), "{...("+endings.Unsaved+"), journalMs: 60000}"), w.tab(t, named(host, root, "Ben"))
		ann.MustEval("type('first'); null", nil)
		ben.MustEval("lease = await hf.acquireProjectLock({steal: true}); null", nil)
		ann.WaitFor("autosave.readOnly && (await autosave.drafts()).length === 1", browser.Limit)
		ann.MustEval("const [draft] = await autosave.drafts(); type(' and since'); await autosave.resolveDraft(draft.id, 'discard'); setTimeout(() => location.replace('/blank?left')); null", nil)
		ann.WaitFor("location.search === '?left'", browser.Limit)
		next := w.attacked(t, named(host, root, "Cem"), endings.Unsaved)
		next.WaitFor("await drafted('and since')", browser.Limit)
		ben.MustEval("await lease.release(); await hf.close(); null", nil)
		next.MustEval("await hf.close(); null", nil)
		for _, tab := range []*browser.Tab{ann, ben, next} {
			tab.Close()
		}
	})
}

// A page that ends or saves while its editor loads the content leaves no partial content behind, neither as a draft
// nor as the content.
func TestHalfLoadedTextIsNotKept(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	ends := map[string]string{"left": "", "disposed": "autosave.dispose().catch(() => {}); ", "disposed first": "", "flushed": "autosave.flushNow().catch(() => {}); "}
	for i, name := range slices.Sorted(maps.Keys(ends)) {
		for _, host := range turns(i, "worker", "page") {
			t.Run(name+"/"+host, func(t *testing.T) {
				root := "half " + host + " " + name
				tab := w.attacked(t, named(host, root, "Ann"), "")
				other := w.editor(t, named(host, root, "Ben"), "")
				other.MustEval("await autosave.requestEdit(); type('whole text'); await autosave.flushNow(); null", nil)
				tab.WaitFor("autosave.readOnly", browser.Limit)
				first := ""
				if name == "disposed first" {
					first = "autosave.dispose().catch(() => {})"
				}
				tab.MustEval(fmt.Sprintf(`autosave.addEventListener('autosave:editable', ({detail}) => {
					%s
					detail.waitUntil(new Promise(() => {}))
					text = 'half'
					autosave.markDirty()
					%ssleep(400).then(() => location.replace('/blank?left'))
				}); null`, first, ends[name]), nil)
				other.MustEval("hf.close(); null", nil)
				tab.WaitFor("location.search === '?left'", browser.Limit)
				next := w.attacked(t, named(host, root, "Cem"), "")
				next.WaitFor("!autosave.readOnly && heard('editable').length === 1", browser.Limit)
				assert.Equal(t, "whole text", browser.Get[string](next, "current()"))
				assert.Equal(t, "nowhere", browser.Get[string](next, "await places('half')"))
				next.MustEval("await hf.close(); null", nil)
				next.Close()
				tab.Close()
				other.Close()
			})
		}
	}
}

// AutoSave waits for an editor that loads a restored generation asynchronously. Until then nothing is saved, and
// nobody can type.
func TestRestoreWaitsForEditor(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		tab := w.editor(t, named(host, "restores "+host, "Ann"), "{debounceMs: 20}")
		tab.MustEval("type('first'); const {id} = await autosave.flushNow(); type(', second'); await autosave.flushNow(); null", nil)
		tab.MustEval(`
			globalThis.loading = undefined
			result = autosave.restore(id, async content => {
				autosave.markDirty() // some editors report this when they begin
				loading = {readOnly: autosave.readOnly, flushed: autosave.flushNow()}
				await new Promise(done => setTimeout(done, 300))
				text = decode(content)
			})
			null`, nil)
		tab.WaitFor("loading", browser.Limit)
		tab.MustEval("const restored = decode(await result), flushed = await loading.flushed; null", nil)
		assert.Equal(t, "first", browser.Get[string](tab, "restored"))
		assert.True(t, browser.Get[bool](tab, "loading.readOnly"))
		assert.False(t, browser.Get[bool](tab, "autosave.readOnly"))
		assert.Equal(t, "first", browser.Get[string](tab, "decode(await autosave.read(flushed.id))"))
		assert.Equal(t, "first", browser.Get[string](tab, "current()"))
		tab.MustEval("type(', third'); await autosave.flushNow(); null", nil)
		assert.Equal(t, "first, third", browser.Get[string](tab, "current()"))
		// An editor that fails or hangs does not prevent typing.
		for _, load := range []string{"() => { throw new Error('planted') }", "() => new Promise(() => {})"} {
			assert.Equal(t, "first", browser.Get[string](tab, "decode(await autosave.restore(id, "+load+"))"))
			assert.False(t, browser.Get[bool](tab, "autosave.readOnly"))
		}
		tab.MustEval("await hf.close()", nil)
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
	})
}

// The call of restore() rejects at its limit although the content is current. The page still shows its own text, which becomes the content
// again.
func TestRestoreThatFailsAfterItsContentIsCurrent(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	for when, limits := range map[string]string{ // 2e9 is no limit
		"before the page can hear of it": "globalThis.setTimeout = (run, ms, ...more) => real(run, ms > 14_000 && ms < 1e9 ? 0 : ms, ...more)",
		"between the event and the answer of the call": `const limits = []
			globalThis.setTimeout = (run, ms, ...more) => ms > 14_000 && ms < 1e9 ? (limits.push(run), 0) : real(run, ms, ...more)
			autosave.addEventListener('autosave:saved', () => limits.forEach(run => run()), {once: true})`,
	} {
		eachHost(t, func(t *testing.T, host string) {
			t.Run(when, func(t *testing.T) {
				tab := w.editor(t, named(host, "late restore "+when+host, "Ann"), "")
				tab.MustEval(`
					type('one')
					const first = await autosave.flushNow()
					type(' two')
					await autosave.flushNow()
					const {setTimeout: real} = globalThis
					`+limits+`
					result = await failure(autosave.restore(first.id))
					globalThis.setTimeout = real
					null`, nil)
				assert.Equal(t, "write-failed", browser.Get[event](tab, "result")["code"])
				tab.WaitFor("heard('saved').length >= 3", browser.Limit)
				tab.MustEval("await autosave.flushNow(); null", nil)
				assert.Equal(t, "one two", browser.Get[string](tab, "text"))
				assert.Equal(t, "one two", browser.Get[string](tab, "current()"))
				assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
				tab.Quiet()
			})
		})
	}
}
