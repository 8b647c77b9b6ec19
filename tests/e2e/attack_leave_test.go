package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
)

// A page that ends while it hands over has unsaved text still: the page that asked gets it, however it comes to edit.
func TestNothingLostWhenPageLeavesDuringHandover(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, s setup) {
		w := open(t, quick)
		eachEnding(t, func(t *testing.T, end endings.Ending, round int, root string) {
			ann := w.attacked(t, s.project(root, "Ann"), endings.Unsaved)
			ben := w.attacked(t, s.project(root, "Ben"), endings.Unsaved)
			word := endings.Word()
			ann.MustEval("hf.addEventListener('lock:handover-requested', e => e.detail.waitUntil(sleep(40))); type('"+word+"'); null", nil)
			if end.Abrupt {
				w.WaitStored(t, word, browser.Limit)
				_, err := ann.Renderer() // found beforehand: a handover is over sooner
				assert.NoError(t, err)
			}
			ben.MustEval("result = failure(autosave.requestEdit()); null", nil)
			time.Sleep(time.Duration(round*7%90) * time.Millisecond) // before, in and after the handover
			end.End(ann)
			ben.MustEval("await result; null", nil)
			endings.AssertFound(t, ben, word, endings.Anywhere...)
			ben.MustEval("await hf.close(); null", nil)
			ann.Spare()
			ben.Spare()
		})
	})
}

// Text that was kept at a freeze is older than text that was saved later, and never comes back over it.
func TestNothingLostByCrashAfterFreeze(t *testing.T) {
	t.Parallel()
	w := open(t, whole)
	eachSetup(t, func(t *testing.T, s setup) {
		eachRound(t, 1, 20, func(t *testing.T, round int, root string) {
			options := []string{"", endings.Unsaved}[round%2]
			word := endings.Word()
			ann := w.attacked(t, s.project(root, "Ann"), options)
			ann.MustEval("type('one'); null", nil)
			ann.Freeze()
			ann.Resume()
			ann.WaitFor("!autosave.readOnly", browser.Limit)
			ann.MustEval("type(', two'); await autosave.flushNow(); type(', "+word+"'); null", nil)
			w.WaitStored(t, word, browser.Limit)
			ann.Crash()
			next := w.attacked(t, s.project(root, "Ben"), options)
			want := "one, two, " + word
			next.WaitFor("!autosave.readOnly && await current() === '"+want+"'", browser.Limit)
			next.WaitFor("text === '"+want+"'", browser.Limit)
			next.MustEval("await hf.close(); null", nil)
			next.Close()
			ann.Close()
		})
	})
}

// A page that lost the lock has its text as a draft, also after it was loaded again.
func TestNothingLostByReloadAfterStolenLock(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, s setup) {
		w := open(t, quick)
		eachEnding(t, func(t *testing.T, end endings.Ending, _ int, root string) {
			word := endings.Word()
			ann := w.attacked(t, s.project(root, "Ann"), endings.Unsaved)
			ben := w.tab(t, s.project(root, "Ben"))
			ann.MustEval("type('"+word+"'); null", nil)
			ben.MustEval("lease = await hf.acquireProjectLock({steal: true}); null", nil)
			ann.WaitFor("autosave.readOnly && heard('readonly').length === 1", browser.Limit)
			end.EndAfter(t, w.Browser, ann, word)

			next := w.attacked(t, s.project(root, "Ann"), endings.Unsaved)
			next.WaitFor("await places('"+word+"') === 'draft'", browser.Limit) // Ben still holds the lock
			ben.MustEval("await lease.release(); null", nil)
			endings.AssertFound(t, next, word, "content")
			next.MustEval("await hf.close(); null", nil)
			next.Spare()
			ann.Spare()
		})
	})
}

// A page whose lease expired while it stood still finds another editor's text when it goes on. Its own is a draft beside that.
func TestNothingLostByReloadAfterExpiredLease(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, s setup) {
		w := open(t, quick)
		eachRound(t, 1, 20, func(t *testing.T, round int, root string) {
			const short = "{debounceMs: 60000, idleMs: 60000, lock: {ttlMs: 2000, heartbeatIntervalMs: 400}}"
			word := endings.Word()
			ann := w.attacked(t, s.project(root, "Ann"), short)
			ben := w.attacked(t, s.project(root, "Ben"), short)
			ann.MustEval("type('"+word+"'); null", nil)
			ann.Suspend()
			ben.WaitFor("!autosave.readOnly", browser.Limit)
			ben.MustEval("type('theirs'); await autosave.flushNow(); null", nil)
			ann.Continue()
			ann.WaitFor("autosave.readOnly && heard('readonly').length === 1", browser.Limit)
			if round%2 == 0 {
				ann.Reload()
			} else {
				ann.Close()
			}
			ben.WaitFor("await places('"+word+"') !== 'nowhere'", browser.Limit)
			ben.MustEval("await hf.close(); null", nil)
			next := w.attacked(t, s.project(root, "Cleo"), short)
			endings.AssertFound(t, next, word, endings.Anywhere...)
			endings.AssertFound(t, next, "theirs", "content", "history")
			next.MustEval("await hf.close(); null", nil)
			next.Spare()
			ann.Spare()
			ben.Spare()
		})
	})
}

// A page that types before it gets the saved content loads that over its own text, which becomes a draft.
func TestNothingLostWhenTypedBeforeContentIsLoaded(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, s setup) {
		w := open(t, quick)
		eachRound(t, 1, 20, func(t *testing.T, _ int, root string) {
			ann := w.attacked(t, s.project(root, "Ann"), endings.Unsaved)
			ann.MustEval("type('saved'); await autosave.flushNow(); await hf.close(); null", nil)
			ben, word := w.tab(t, s.project(root, "Ben")), endings.Word()
			ben.MustEval(editing, nil)
			ben.MustEval("await edit("+endings.Unsaved+"); type('"+word+"'); null", nil)
			ben.WaitFor("heard('editable').length === 1 && text === 'saved'", browser.Limit)
			ben.MustEval("type('!'); await autosave.flushNow(); await hf.close(); null", nil)
			w.assertLeft(t, s.project(root, "Cleo"), endings.Unsaved, word, endings.Anywhere...)
			w.assertLeft(t, s.project(root, "Cleo"), endings.Unsaved, "saved!", "content")
			ann.Spare()
		})
	})
}

// A page that types before it loads the content has typed on nothing. That draft never replaces the content, however the page ends.
func TestNothingLostWhenPageEndsThatTypedBeforeContentIsLoaded(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, s setup) {
		w := open(t, quick)
		eachEnding(t, func(t *testing.T, end endings.Ending, _ int, root string) {
			word := endings.Word()
			ben := w.early(t, s, root, "type('"+word+"')")
			ben.WaitFor("heard('editable').length === 1 && text === 'saved'", browser.Limit)
			w.WaitStored(t, word, browser.Limit)
			end.End(ben)
			w.assertTypedOnNothing(t, s, root, word)
		})
	})
}

// The same where the page saves or ends before it has loaded the content, and empties its editor.
func TestNothingLostByCallBeforeContentIsLoaded(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, s setup) {
		w := open(t, quick)
		for name, call := range map[string]string{"close": "hf.close()", "dispose": "autosave.dispose()", "flushNow": "autosave.flushNow()"} {
			t.Run(name, func(t *testing.T) {
				eachRound(t, 1, 20, func(t *testing.T, _ int, root string) {
					word := endings.Word()
					ben := w.early(t, s, root, "type('"+word+"'); { const done = failure("+call+"); text = ''; result = await done }")
					assert.Equal(t, "read-only", browser.Get[string](ben, "result.code"))
					ben.Close()
					w.assertTypedOnNothing(t, s, root, word)
				})
			})
		}
	})
}

// A page that types although it is read-only, and ends when it is given the content, has the runtime believe that it has something
// to save. By the time the runtime asks for that, the editor is empty.
func TestNothingLostByPageThatEndsWhenItMayEdit(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, s setup) {
		w := open(t, quick)
		eachRound(t, 2, 20, func(t *testing.T, _ int, root string) {
			ann := w.attacked(t, s.project(root, "Ann"), endings.Unsaved)
			ann.MustEval("type('saved'); null", nil)
			ben := w.attacked(t, s.project(root, "Ben"), endings.Unsaved)
			ben.MustEval(`{
				const {port1, port2} = new MessageChannel()
				globalThis.ended = false
				port1.onmessage = async () => { if (!ended) { type('.'); await failure(autosave.read('none')); port2.postMessage(0) } }
				port2.postMessage(0)
				autosave.addEventListener('autosave:editable', () => { ended = true })
			} null`, nil)
			ann.MustEval("await hf.close(); null", nil)
			ben.WaitFor("ended && autosave.state().phase !== 'awaiting-lock'", browser.Limit)
			ben.MustEval("{ const done = hf.close(); text = ''; await done } null", nil)
			next := w.attacked(t, s.project(root, "Cleo"), endings.Unsaved)
			next.WaitFor("!autosave.readOnly", browser.Limit)
			assert.Equal(t, "saved", browser.Get[string](next, "await current()"))
			next.MustEval("await hf.close(); null", nil)
		})
	})
}

// early opens a page of a document in which somebody has saved. It runs a script before it gets the content.
func (w world) early(t *testing.T, s setup, root, do string) *browser.Tab {
	t.Helper()
	ann := w.attacked(t, s.project(root, "Ann"), endings.Unsaved)
	ann.MustEval("type('saved'); await autosave.flushNow(); await hf.close(); null", nil)
	ann.Spare()
	ben := w.tab(t, s.project(root, "Ben"))
	ben.MustEval(editing, nil)
	ben.MustEval("await edit("+endings.Unsaved+"); "+do+"; null", nil)
	return ben
}

// assertTypedOnNothing asserts that the content is what was saved, and that a word that was typed without it is a draft.
func (w world) assertTypedOnNothing(t *testing.T, s setup, root, word string) {
	t.Helper()
	next := w.attacked(t, s.project(root, "Cleo"), endings.Unsaved)
	next.WaitFor("!autosave.readOnly", browser.Limit)
	assert.Equal(t, "saved", browser.Get[string](next, "await current()"))
	next.WaitFor("await places('"+word+"') === 'draft'", browser.Limit)
	next.MustEval("await hf.close(); null", nil)
	next.Spare()
}

// A page that lost the lock shows what others have saved over its own text. That text stays a draft, or is saved.
func TestNothingLostWhenPageShowsAnotherTextOverItsDraft(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, s setup) {
		w := open(t, quick)
		robbed := func(t *testing.T, root, word string) (ann, ben *browser.Tab) {
			ann, ben = w.attacked(t, s.project(root, "Ann"), endings.Unsaved), w.tab(t, s.project(root, "Ben"))
			ann.MustEval("type('saved'); await autosave.flushNow(); type('"+word+"'); null", nil)
			ben.MustEval("lease = await hf.acquireProjectLock({steal: true}); null", nil)
			ann.WaitFor("autosave.readOnly && heard('readonly').length === 1", browser.Limit)
			ann.MustEval("text = await current(); null", nil)
			return ann, ben
		}
		eachEnding(t, func(t *testing.T, end endings.Ending, _ int, root string) {
			word := endings.Word()
			ann, ben := robbed(t, root, word)
			end.EndAfter(t, w.Browser, ann, word)
			ben.MustEval("await hf.close(); null", nil)
			w.assertLeft(t, s.project(root, "Cleo"), endings.Unsaved, word, "content")
			ann.Spare()
		})
		eachRound(t, 1, 20, func(t *testing.T, _ int, root string) {
			word := endings.Word()
			ann, ben := robbed(t, root, word)
			ben.MustEval("await hf.close(); null", nil)
			ann.WaitFor("!autosave.readOnly", browser.Limit)
			ann.MustEval("type(', more'); await autosave.flushNow(); null", nil)
			endings.AssertFound(t, ann, word, endings.Anywhere...)
			ann.MustEval("await hf.close(); null", nil)
			w.assertLeft(t, s.project(root, "Cleo"), endings.Unsaved, word, endings.Anywhere...)
			ann.Spare()
		})
	})
}
