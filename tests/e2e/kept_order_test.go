package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A text typed in a page that reads becomes a draft, and the storage refuses it late. By then, localStorage has what was typed since.
func TestRefusedDraftReplacesNoLaterText(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	const root = "a late refusal"
	w.editor(t, named("worker", root, "Ann"), "")
	ben := w.editor(t, named("worker", root, "Ben"), "")
	ben.MustEval(`
		const {postMessage} = Worker.prototype
		globalThis.refuse = undefined
		Worker.prototype.postMessage = function (message, ...more) {
			if (message.kind !== 'journal' || !['write', 'seal'].includes(message.method)) return postMessage.call(this, message, ...more)
			if (message.method === 'seal') globalThis.refuse = () => this.onmessage({data: {kind: 'error', id: message.id, reason: new DOMException('planted', 'TimeoutError')}})
		}
		globalThis.kept = () => Object.keys(localStorage).filter(key => key.startsWith('holdfast:draft:')).map(key => JSON.parse(localStorage[key]).differences[0].insert)
		type('one')
		null`, nil)
	ben.WaitFor("refuse", browser.Limit)
	ben.MustEval("type(', two'); document.dispatchEvent(new Event('freeze')); null", nil)
	assert.Equal(t, []string{"one, two"}, browser.Get[[]string](ben, "kept()"))
	ben.MustEval("refuse(); await sleep(50); null", nil)
	assert.Equal(t, []string{"one, two"}, browser.Get[[]string](ben, "kept()"))
}
