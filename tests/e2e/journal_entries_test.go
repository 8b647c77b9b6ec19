package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
)

// noDraftFiles makes a worker open no more files of drafts, as if the disk were full.
const noDraftFiles = `{
	const open = FileSystemFileHandle.prototype.createSyncAccessHandle
	FileSystemFileHandle.prototype.createSyncAccessHandle = function () {
		return /^[0-9a-f]{8}-[0-9a-f]{4}-/.test(this.name) ? Promise.reject(new DOMException('full', 'QuotaExceededError')) : open.call(this)
	}
}
1`

// The draft of a page that has taken a thousand snapshots becomes the content. The numbers of the page that shows it begin far below: its
// text counts as stored only if a file or localStorage contains it.
func TestTextIsKeptAfterAnotherPagesDraftBecameTheContent(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := w.editor(t, named("worker", "high number", "Ann"), endings.Unsaved)
	tab.MustEval("type('one'); await autosave.flushNow(); await autosave.dispose(); null", nil)
	tab.MustEval(`const id = crypto.randomUUID()
		localStorage.setItem('holdfast:draft:high number/autosave:' + id, JSON.stringify({draft: id, number: 1000, base: '', at: Date.now(), ownerId: 'gone', binary: false,
			differences: [{length: 0, prefix: 0, suffix: 0, insert: 'one, mine'}]}))
		await edit(`+endings.Unsaved+`)
		await autosave.resolveDraft(id, 'content'); null`, nil)
	assert.Equal(t, "one, mine", browser.Get[string](tab, "text"))
	tab.WorkerEval(noDraftFiles, nil)
	word := endings.Word()
	tab.MustEval("type('"+word+"'); null", nil)
	tab.WaitFor("Object.values(localStorage).some(value => value.includes('"+word+"'))", browser.Limit)
	tab.MustEval("await hf.close(); null", nil)
}

// A page loses the lock, and another page makes its draft the content. The first page keeps its text once more as it is hidden, and then loads
// that content. Its text is no draft any more: a later page does not merge it again.
func TestAdoptedTextIsNotMergedLater(t *testing.T) {
	t.Parallel()
	const options = "{debounceMs: 60000, idleMs: 60000, maxGenerations: 1, merge: c => { merges.push(decode(c.mine)); return decode(c.theirs) + decode(c.mine) }}"
	eachHost(t, func(t *testing.T, host string) {
		w := open(t, quick)
		root := "adopted " + host
		ann, ben := w.tab(t, named(host, root, "Ann")), w.tab(t, named(host, root, "Ben"))
		for _, tab := range []*browser.Tab{ann, ben} {
			tab.MustEval(endings.Editing, nil)
			tab.MustEval("globalThis.merges = []; await edit("+options+"); null", nil)
		}
		ann.MustEval("type('one'); await autosave.flushNow(); type(', mine'); null", nil)
		ben.MustEval("lease = await hf.acquireProjectLock({steal: true}); null", nil)
		ann.WaitFor("heard('readonly').length === 1 && autosave.state().drafts === 1", browser.Limit)
		ben.MustEval("await lease.release(); null", nil)
		ben.WaitFor("!autosave.readOnly && text === 'one, mine'", browser.Limit)
		ann.MustEval("document.dispatchEvent(new Event('freeze')); null", nil)
		ben.MustEval("type(', theirs'); await autosave.flushNow(); await hf.close(); null", nil)
		ann.WaitFor("!autosave.readOnly && text === 'one, mine, theirs'", browser.Limit)
		ann.MustEval("type('!'); await autosave.flushNow(); await autosave.dispose(); await edit("+options+"); null", nil)
		ann.WaitFor("!autosave.readOnly", browser.Limit)
		assert.Equal(t, "one, mine, theirs!", browser.Get[string](ann, "text"))
		assert.Empty(t, browser.Get[[]string](ann, "merges"))
		ann.MustEval("await hf.close(); null", nil)
	})
}
