package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// countWrites counts the snapshots that a page sends to the file of its draft: the next one after the answer to the last one. Once `busy` is
// true, Go gets no calls. Once `over` is true, the worker gets nothing.
const countWrites = `{
	const {postMessage} = Worker.prototype
	globalThis.writes = 0
	Worker.prototype.postMessage = function (message, ...rest) {
		if (globalThis.over || globalThis.busy && message.kind === 'call') return
		if (message.method === 'write') globalThis.writes++
		postMessage.call(this, message, ...rest)
	}
}
null`

// A page that may not write shows a text that the user has discarded. The text is marked again without a change while Go is busy, then the user
// types on, and the page ends at once. The file of the draft has nothing of the discarded text, so the last words do not build on it.
func TestLastWordsAfterADiscardedText(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	ann := w.editor(t, named("worker", "discarded again", "Ann"), "")
	ann.MustEval(countWrites, nil)
	ann.MustEval("type('saved'); await autosave.flushNow(); null", nil)
	ben := w.editor(t, named("worker", "discarded again", "Ben"), "")
	ben.MustEval("await autosave.requestEdit(); null", nil)
	ann.WaitFor("autosave.readOnly", browser.Limit)
	ann.MustEval("type(', mine'.repeat(10_000)); null", nil)
	ann.WaitFor("autosave.state().drafts === 1", browser.Limit)
	ben.MustEval("await autosave.resolveDraft((await autosave.drafts())[0].id, 'discard'); null", nil)
	ann.WaitFor("autosave.state().drafts === 0 && autosave.state().pendingBytes === 0", browser.Limit)

	ann.MustEval(`
		globalThis.busy = true
		const before = writes, marking = setInterval(() => autosave.markDirty(), 20) // it becomes no draft between two marks
		while (writes < before + 2) await sleep(1)
		clearInterval(marking)
		globalThis.over = true
		type('!')
		dispatchEvent(new Event('pagehide'))
		null`, nil)
	ann.Crash()
	assert.Equal(t, []string{"!"}, browser.Get[[]string](ben, "Promise.all((await autosave.drafts()).map(({id}) => autosave.read(id).then(text => decode(text).slice(-1))))"))
}
