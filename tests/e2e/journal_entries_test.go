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
