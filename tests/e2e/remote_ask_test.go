package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// sharedEditor is an editor of a page whose project is on a server.
const sharedEditor = `{
	globalThis.text = ''
	globalThis.heard = []
	globalThis.decoded = (bytes) => new TextDecoder().decode(bytes)
	globalThis.edit = async () => {
		globalThis.saver = await hf.initAutoSave(() => text, {debounceMs: 60000, idleMs: 60000})
		for (const type of ['preview', 'editable', 'readonly']) saver.addEventListener('autosave:' + type, ({detail}) => {
			heard.push(type)
			if (detail.content) text = decoded(detail.content)
		})
	}
	await edit()
}`

// A page asks for the lock that a page in another browser has. The two share nothing but the server.
func TestRequestReachesAnotherBrowser(t *testing.T) {
	t.Parallel()
	server := serve(t)
	browsers := profiles(t, 2)
	ann, bob := server.member(t, browsers[0], "worker", "Ann"), server.member(t, browsers[1], "page", "Bob")
	ann.MustEval(sharedEditor, nil)
	bob.MustEval(sharedEditor, nil)
	assert.True(t, browser.Get[bool](bob, "saver.readOnly"))

	ann.MustEval("text = 'typed just now'; saver.markDirty(); null", nil)
	took := browser.Get[float64](bob, "await (async () => { const began = now(); await saver.requestEdit(); return now() - began })()")
	assert.Less(t, took, 3000.0, "ms")
	assert.False(t, browser.Get[bool](bob, "saver.readOnly"))
	assert.Equal(t, "typed just now", browser.Get[string](bob, "text"))
	ann.WaitFor("saver.readOnly", browser.Limit)
	assert.Equal(t, "Bob", browser.Get[string](ann, "events.find(e => e.type === 'lock:handover-requested').from"))
	assert.Equal(t, "server", browser.Get[string](ann, "saver.state().storage"))
	assert.True(t, browser.Get[bool](ann, "saver.state().online"))

	// A page that says no keeps the lock, also from force.
	bob.MustEval("hf.addEventListener('lock:handover-requested', ({detail}) => detail.refuse('in a call')); null", nil)
	refused := browser.Get[failed](ann, "await failure(saver.requestEdit({force: true, graceMs: 2000}))")
	assert.Equal(t, "handover-refused", refused.Code)
	assert.Contains(t, refused.Message, "in a call")
	assert.False(t, browser.Get[bool](bob, "saver.readOnly"))
}

// A page that begins to edit while the server is away shows what this browser knows, read-only, and goes on by itself.
func TestPageBeginsWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	server := serve(t)
	b := profiles(t, 1)[0]
	ann := server.member(t, b, "worker", "Ann")
	ann.MustEval(sharedEditor, nil)
	ann.MustEval("text = 'known here'; saver.markDirty(); await saver.flushNow(); await saver.dispose()", nil)
	address := server.Address()
	server.Stop()
	ann.MustEval("text = ''; heard.length = 0; await edit(); null", nil)
	ann.WaitFor("heard.length === 2", browser.Limit)
	assert.Equal(t, []string{"preview", "readonly"}, browser.Get[[]string](ann, "heard"))
	assert.Equal(t, "known here", browser.Get[string](ann, "text"))
	assert.True(t, browser.Get[bool](ann, "saver.readOnly"))
	assert.False(t, browser.Get[bool](ann, "saver.state().online"))
	server.Start(address)
	ann.WaitFor("!saver.readOnly && saver.state().online", browser.Limit)
	assert.Equal(t, "known here", browser.Get[string](ann, "text"))
}
