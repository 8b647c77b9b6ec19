package e2e

import (
	"fmt"
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

// A page requests the lock of a page in another browser. The two share only the server.
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
	assert.Less(t, took, browser.Prompt)
	assert.False(t, browser.Get[bool](bob, "saver.readOnly"))
	assert.Equal(t, "typed just now", browser.Get[string](bob, "text"))
	ann.WaitFor("saver.readOnly", browser.Limit)
	assert.Equal(t, "Bob", browser.Get[string](ann, "events.find(e => e.type === 'lock:handover-requested').from"))
	assert.Equal(t, "server", browser.Get[string](ann, "saver.state().storage"))
	assert.True(t, browser.Get[bool](ann, "saver.state().online"))

	// A page that refuses keeps the lock, even against force.
	bob.MustEval("hf.addEventListener('lock:handover-requested', ({detail}) => detail.refuse('in a call')); null", nil)
	refused := browser.Get[failed](ann, "await failure(saver.requestEdit({force: true, graceMs: 2000}))")
	assert.Equal(t, "handover-refused", refused.Code)
	assert.Contains(t, refused.Message, "in a call")
	assert.False(t, browser.Get[bool](bob, "saver.readOnly"))
}

// A page that begins to edit while the server is unreachable shows the text that this browser has, read-only, and
// continues on its own.
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
	assert.ElementsMatch(t, []string{"preview", "readonly"}, browser.Get[[]string](ann, "heard"), "a slow preview comes second")
	assert.Equal(t, "known here", browser.Get[string](ann, "text"))
	assert.True(t, browser.Get[bool](ann, "saver.readOnly"))
	assert.False(t, browser.Get[bool](ann, "saver.state().online"))
	server.Start(address)
	ann.WaitFor("!saver.readOnly && saver.state().online", browser.Limit)
	assert.Equal(t, "known here", browser.Get[string](ann, "text"))
}

// Each path is a separate document on the server, with its own lock, content and history. The lock of a document and
// that of the whole project exclude each other, and a request reaches the holder in either direction.
func TestDocumentsOfAProjectOnTheServer(t *testing.T) {
	t.Parallel()
	server := serve(t)
	browsers := profiles(t, 2)
	ann, bob := server.member(t, browsers[0], "worker", "Ann"), server.member(t, browsers[1], "worker", "Bob")
	open := func(tab *browser.Tab, name, options string) {
		tab.MustEval(`globalThis.texts ??= {}; texts.`+name+` = ''
			globalThis.`+name+` = await hf.initAutoSave(() => texts.`+name+`, `+options+`)
			`+name+`.addEventListener('autosave:editable', ({detail}) => { if (detail.content) texts.`+name+` = new TextDecoder().decode(detail.content) }); null`, nil)
	}
	open(ann, "one", "{path: ['part 1', 'あ']}")
	open(bob, "two", "{path: ['part 2']}")
	assert.False(t, browser.Get[bool](ann, "one.readOnly"))
	assert.False(t, browser.Get[bool](bob, "two.readOnly"), "they do not exclude each other")
	ann.MustEval("texts.one = 'by Ann'; one.markDirty(); await one.flushNow()", nil)
	bob.MustEval("texts.two = 'by Bob'; two.markDirty(); await two.flushNow()", nil)
	const content = "await (await fetch('/api/documents/project%s/content')).text()"
	assert.Equal(t, "by Ann", browser.Get[string](bob, fmt.Sprintf(content, "~.part~201~.~E3~81~82")))
	assert.Equal(t, "by Bob", browser.Get[string](ann, fmt.Sprintf(content, "~.part~202")))

	open(bob, "one", "{path: ['part 1', 'あ']}")
	assert.True(t, browser.Get[bool](bob, "one.readOnly"))
	ann.MustEval("texts.one += ', again'; one.markDirty(); null", nil)
	bob.MustEval("await one.requestEdit()", nil)
	assert.Equal(t, "by Ann, again", browser.Get[string](bob, "texts.one"))
	ann.WaitFor("one.readOnly", browser.Limit)
	assert.Equal(t, []bool{true}, browser.Get[[]bool](bob, "(await two.history()).map(g => g.current)"))

	open(ann, "whole", "")
	assert.True(t, browser.Get[bool](ann, "whole.readOnly"))
	bob.MustEval("await one.dispose(); await two.dispose()", nil)
	ann.MustEval("await one.dispose()", nil)
	ann.WaitFor("!whole.readOnly", browser.Limit)
	open(bob, "two", "{path: ['part 2']}")
	assert.True(t, browser.Get[bool](bob, "two.readOnly"))
	bob.MustEval("await two.requestEdit()", nil)
	assert.Equal(t, "by Bob", browser.Get[string](bob, "texts.two"))
	ann.WaitFor("whole.readOnly", browser.Limit)

	long := browser.Get[failed](ann, "await failure(hf.initAutoSave(() => '', {path: ['x'.repeat(128)]}))")
	assert.Equal(t, "invalid-argument", long.Code)
}
