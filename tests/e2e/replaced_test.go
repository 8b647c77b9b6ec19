package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// The user types and saves after a generation was restored, and before the page gets the generation. The text is a draft, so flushNow() does
// not say that it is saved.
func TestFlushOfATextThatARestoreReplaces(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	ann := w.editor(t, named("worker", "replaced by a restore", "Ann"), "")
	ann.MustEval(`
		type('one'); const first = await autosave.flushNow()
		type(' two'); await autosave.flushNow()
		const {postMessage} = Worker.prototype
		const answered = new Promise(done => {
			Worker.prototype.postMessage = function (message, ...more) {
				if (message.method === 'restore') {
					const {onmessage} = this, late = [], answers = one => one.kind === 'several' ? one.messages.some(answers) : one.kind === 'result' && one.id === message.id
					this.onmessage = event => {
						late.push(event)
						if (answers(event.data)) done(() => {
							this.onmessage = onmessage
							for (const event of late) onmessage.call(this, event)
						})
					}
				}
				postMessage.call(this, message, ...more)
			}
		})
		const restored = autosave.restore(first.id).then(content => { text = decode(content) })
		const arrive = await answered
		type(' three')
		const flushed = failure(autosave.flushNow())
		arrive()
		await restored`, nil)
	got := browser.Get[map[string]any](ann, "await flushed")
	assert.Equal(t, "read-only", got["code"], "%v", got)
	ann.WaitFor("autosave.state().phase === 'idle'", browser.Limit)
	assert.Equal(t, "one", browser.Get[string](ann, "current()"))
	assert.Equal(t, []string{"one two three"}, browser.Get[[]string](ann, "Promise.all((await autosave.drafts()).map(({id}) => autosave.read(id).then(decode)))"))
}

// A page that has typed in vain ends as it is given another text. Its own text is a draft, and dispose() says so.
func TestDisposeOfATextThatAnotherReplaces(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "replaced as it ends " + host
		ann := w.editor(t, named(host, root, "Ann"), "")
		ann.MustEval("type('theirs'); await autosave.flushNow(); null", nil)
		ben := w.editor(t, named(host, root, "Ben"), "")
		ben.MustEval("type('mine'); null", nil)
		ben.WaitFor("(await autosave.drafts()).length === 1", browser.Limit)
		ben.MustEval("autosave.addEventListener('autosave:draft', () => { globalThis.ended ??= failure(autosave.dispose()) }); null", nil)
		ann.MustEval("await autosave.dispose(); null", nil)
		ben.WaitFor("globalThis.ended", browser.Limit)
		got := browser.Get[map[string]any](ben, "await ended")
		assert.Equal(t, "read-only", got["code"], "%v", got)
		cleo := w.editor(t, named(host, root, "Cleo"), "")
		assert.Equal(t, "theirs", browser.Get[string](cleo, "current()"))
		assert.Equal(t, []string{"mine"}, browser.Get[[]string](cleo, "Promise.all((await autosave.drafts()).map(({id}) => autosave.read(id).then(decode)))"))
	})
}

// A page shows something else until it has the generation that it restores. Its unsaved text is backed up nevertheless.
func TestRestoreBacksUpTheTextAtTheCall(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		ann := w.editor(t, named(host, "backed up "+host, "Ann"), "{debounceMs: 60000, idleMs: 60000}")
		ann.MustEval(`
			type('one'); const first = await autosave.flushNow()
			type(', two'); await sleep(0)
			const restored = autosave.restore(first.id)
			text = 'one moment, please'
			text = decode(await restored); null`, nil)
		assert.Equal(t, "one", browser.Get[string](ann, "current()"))
		assert.Equal(t, []string{"one", "one, two", "one"}, browser.Get[[]string](ann, "Promise.all((await autosave.history()).map(({id}) => autosave.read(id).then(decode)))"))
	})
}
