package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
)

// A page lost the lock with unsaved text, and shows another text. As it edits again, the draft of a third page waits, so its own text is saved
// before it gets autosave:editable. It gets its own text nevertheless: otherwise the other text would replace it.
func TestPageThatLostItsLockGetsItsTextBackBesideADraft(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "stolen beside a draft " + host
		ann, ben := w.editor(t, named(host, root, "Ann"), endings.Unsaved), w.tab(t, named(host, root, "Ben"))
		ann.MustEval("type('saved'); await autosave.flushNow(); type(', mine'); null", nil)
		ben.MustEval("lease = await hf.acquireProjectLock({steal: true}); null", nil)
		ann.WaitFor("heard('readonly').length === 1", browser.Limit)
		ann.MustEval("text = 'theirs'; null", nil)

		cleo := w.editor(t, named(host, root, "Cleo"), "")
		cleo.MustEval("type('a draft'); await failure(autosave.dispose()); await hf.close(); null", nil)
		ben.MustEval("await lease.release(); await hf.close(); null", nil)
		ann.WaitFor("!autosave.readOnly", browser.Limit)
		assert.Equal(t, "saved, mine", browser.Get[string](ann, "text"))
		ann.MustEval("type(', more'); await autosave.flushNow(); null", nil)
		assert.Equal(t, "saved, mine, more", browser.Get[string](ann, "current()"))
		ann.MustEval("await hf.close(); null", nil)
	})
}

// A user types before the AutoSave is ready, while another page edits. The page shows the text of the other page as it learns that it may not
// write. Its own text comes with that event, and is a draft.
func TestTextBeforeReadyIsUnsavedText(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "unsaved before ready " + host
		ann, ben := w.editor(t, named(host, root, "Ann"), ""), w.tab(t, named(host, root, "Ben"))
		ann.MustEval("type('theirs'); await autosave.flushNow(); null", nil)
		ben.MustEval(endings.Editing, nil)
		ben.MustEval(endings.Script, nil)
		ben.MustEval(`
			globalThis.autosave = hf.createAutoSave(() => text)
			autosave.addEventListener('autosave:readonly', ({detail}) => {
				if (detail.unsaved) offered.push(decode(detail.unsaved))
				text = 'theirs'
			})
			type('mine')
			null`, nil)
		ben.WaitFor("text === 'theirs'", browser.Limit)
		assert.Equal(t, []string{"mine"}, browser.Get[[]string](ben, "offered"))
		ben.WaitFor("await drafted('mine')", browser.Limit)
		assert.Equal(t, "draft", browser.Get[string](ben, "await places('mine')"))
		ben.MustEval("await failure(autosave.dispose()); await hf.close(); null", nil)
		ann.MustEval("await hf.close(); null", nil)
	})
}

// A user types before the AutoSave has the content, which then takes the place of the text. The typed text comes with that event, and is
// a draft.
func TestTextBeforeTheContentIsUnsavedText(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "unsaved before content " + host
		ann := w.editor(t, named(host, root, "Ann"), "")
		ann.MustEval("type('theirs'); await hf.close(); null", nil)
		ben := w.tab(t, named(host, root, "Ben"))
		ben.MustEval(endings.Editing, nil)
		ben.MustEval(endings.Script, nil)
		ben.MustEval(`
			globalThis.autosave = hf.createAutoSave(() => text)
			autosave.addEventListener('autosave:editable', ({detail}) => {
				if (detail.unsaved) offered.push(decode(detail.unsaved))
				text = decode(detail.content)
			})
			globalThis.found = []
			autosave.addEventListener('autosave:draft', ({detail}) => found.push(detail.id))
			type('mine')
			null`, nil)
		ben.WaitFor("text === 'theirs' && found.length > 0", browser.Limit)
		assert.True(t, browser.Get[bool](ben, "found.length === 1 && autosave.state().drafts === 1"))
		assert.Equal(t, []string{"mine"}, browser.Get[[]string](ben, "offered"))
		ben.WaitFor("await drafted('mine')", browser.Limit)
		assert.Equal(t, "draft", browser.Get[string](ben, "await places('mine')"))
		ben.MustEval("await hf.close(); null", nil)
	})
}

// Another page makes the draft of a page that lost its lock the content, and types on until the history no longer has that generation. That page still
// shows that text. It ends without an error, and without a draft that would be a conflict.
func TestStolenPageWhoseTextAnotherPageHasSavedLeavesNoDraft(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "stolen and adopted " + host
		ann, ben := w.tab(t, named(host, root, "Ann")), w.tab(t, named(host, root, "Ben"))
		ann.MustEval(endings.Editing, nil)
		ann.MustEval("await edit({standby: false, debounceMs: 60000, idleMs: 60000}); type('mine'); null", nil)
		ben.MustEval("lease = await hf.acquireProjectLock({steal: true}); null", nil)
		ann.WaitFor("heard('readonly').length === 1 && autosave.state().drafts === 1", browser.Limit)
		ben.MustEval("await lease.release(); null", nil)
		ben.MustEval(endings.Editing, nil)
		ben.MustEval("await edit({maxGenerations: 2}); null", nil)
		ben.WaitFor("text === 'mine'", browser.Limit)
		ann.WaitFor("autosave.state().drafts === 0 && autosave.state().pendingBytes === 0", browser.Limit)
		ben.MustEval("for (let i = 0; i < 3; i++) { type('!'); await autosave.flushNow() } null", nil)
		ann.MustEval("await autosave.dispose(); await hf.close(); null", nil)
		assert.Equal(t, 0, browser.Get[int](ben, "(await autosave.drafts()).length"))
		ben.MustEval("await hf.close(); null", nil)
	})
}

// Another page discards the draft of a page that lost its lock and still shows that text. That page ends without an error, and the draft does not
// come back.
func TestDraftOfAStolenPageThatAnotherPageDiscardsStaysDiscarded(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "stolen and discarded " + host
		ann, ben := w.tab(t, named(host, root, "Ann")), w.tab(t, named(host, root, "Ben"))
		ann.MustEval(endings.Editing, nil)
		ann.MustEval("await edit({standby: false, debounceMs: 60000, idleMs: 60000}); type('one'); await autosave.flushNow(); type(', mine'); null", nil)
		ben.MustEval("lease = await hf.acquireProjectLock({steal: true}); null", nil)
		ann.WaitFor("heard('readonly').length === 1 && autosave.state().drafts === 1", browser.Limit)
		ann.MustEval("type(', more'); null", nil)
		ann.WaitFor("(await autosave.drafts())[0]?.bytes === 15", browser.Limit)
		ben.MustEval(endings.Editing, nil)
		ben.MustEval("await edit({standby: false}); const [{id}] = await autosave.drafts(); await autosave.resolveDraft(id, 'discard'); null", nil)
		ann.WaitFor("autosave.state().drafts === 0", browser.Limit)
		ann.MustEval("await autosave.dispose(); await hf.close(); null", nil)
		assert.Equal(t, 0, browser.Get[int](ben, "(await autosave.drafts()).length"))
		ben.MustEval("await lease.release(); await hf.close(); null", nil)
	})
}

// A page that may not write has made a draft of what the user types there, and another page discards that draft. The first page has nothing
// unsaved, and shows what is saved as it edits again.
func TestDraftOfAViewerThatAnotherPageDiscardsStaysDiscarded(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "viewer and discarded " + host
		ann, ben := w.tab(t, named(host, root, "Ann")), w.tab(t, named(host, root, "Ben"))
		viewerWithDraft(ann, ben)
		ben.MustEval(endings.Editing, nil)
		ben.MustEval("await edit({standby: false}); const [{id}] = await autosave.drafts(); await autosave.resolveDraft(id, 'discard'); null", nil)
		ann.WaitFor("autosave.state().drafts === 0 && autosave.state().pendingBytes === 0", browser.Limit)
		ben.MustEval("await lease.release(); await hf.close(); null", nil)
		ann.MustEval("await autosave.requestEdit(); await autosave.flushNow(); null", nil)
		assert.Equal(t, "one", browser.Get[string](ann, "text"))
		assert.Equal(t, "one", browser.Get[string](ann, "decode(await autosave.read('current'))"))
		ann.MustEval("await hf.close(); null", nil)
	})
}

// viewerWithDraft lets Ann save "one", Ben take the lock from her, and Ann type on.
func viewerWithDraft(ann, ben *browser.Tab) {
	ann.MustEval(endings.Editing, nil)
	ann.MustEval("await edit({standby: false}); type('one'); await autosave.flushNow(); null", nil)
	ben.MustEval("lease = await hf.acquireProjectLock({steal: true}); null", nil)
	ann.WaitFor("heard('readonly').length === 1", browser.Limit)
	ann.MustEval("type(', mine'); null", nil)
	ann.WaitFor("autosave.state().drafts === 1", browser.Limit)
}

// A page that shows a draft sleeps in the back/forward cache, where it receives nothing, and the user discards the draft in another page. The page
// comes back, but not the draft: neither if the page edits again, nor if it ends as a viewer.
func TestDraftThatIsDiscardedWhileItsPageSleepsStaysDiscarded(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		for _, next := range []string{"edits", "ends"} {
			t.Run(next, func(t *testing.T) {
				root := "asleep and discarded " + next + host
				ann, ben := w.editor(t, named(host, root, "Ann"), "{standby: false}"), w.editor(t, named(host, root, "Ben"), "{standby: false}")
				ann.MustEval("type('one'); await autosave.flushNow(); null", nil)
				ben.MustEval("await autosave.requestEdit(); type(', theirs'); await autosave.flushNow(); null", nil)
				ann.MustEval("type(', mine'); null", nil)
				ann.WaitFor("autosave.state().drafts === 1", browser.Limit)
				ann.MustEval(asHidden, nil)
				ben.WaitFor("(await autosave.drafts()).length === 1", browser.Limit)
				ben.MustEval("const [{id}] = await autosave.drafts(); await autosave.resolveDraft(id, 'discard'); null", nil)
				if next == "edits" {
					ben.MustEval("await hf.close(); null", nil)
				}
				ann.MustEval(asShown, nil)
				assert.Equal(t, 0, browser.Get[int](ann, "(await autosave.drafts()).length"))
				if next == "edits" {
					ann.WaitFor("!autosave.readOnly", browser.Limit)
					assert.Equal(t, "one, theirs", browser.Get[string](ann, "text"))
					assert.Equal(t, 0, browser.Get[int](ann, "(await autosave.drafts()).length"))
				}
				ann.MustEval("await autosave.dispose(); await hf.close(); null", nil)
				if next == "ends" {
					assert.Equal(t, 0, browser.Get[int](ben, "(await autosave.drafts()).length"))
					ben.MustEval("await hf.close(); null", nil)
				}
			})
		}
	})
}

// The user discards the draft of a viewer that still shows the text. Then its worker dies, and the page begins anew as the editor: it shows what
// is saved.
func TestDiscardedTextIsNotShownAsSaved(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	ann, ben := w.tab(t, named("worker", "discarded and anew", "Ann")), w.tab(t, named("worker", "discarded and anew", "Ben"))
	viewerWithDraft(ann, ben)
	ann.MustEval("const [{id}] = await autosave.drafts(); await autosave.resolveDraft(id, 'discard'); null", nil)
	ann.WaitFor("autosave.state().pendingBytes === 0", browser.Limit)
	ben.MustEval("await lease.release(); await hf.close(); null", nil)
	ann.EndWorker("self.close()")
	ann.WaitFor("!autosave.readOnly", browser.Limit)
	assert.Equal(t, "one", browser.Get[string](ann, "text"))
	ann.MustEval("type(', two'); await autosave.flushNow(); null", nil)
	assert.Equal(t, "one, two", browser.Get[string](ann, "await current()"))
	ann.MustEval("await hf.close(); null", nil)
}
