package e2e

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
)

// The browser is ended by the system, orderly or not. No page hears of it.
func TestNothingLostByEndOfBrowser(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, s setup) {
		w := open(t, quick)
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			t.Run(signal.String(), func(t *testing.T) {
				eachRound(t, 1, 20, func(t *testing.T, round int, root string) {
					word := endings.Word()
					ann := w.attacked(t, s.project(root, "Ann"), endings.Unsaved)
					if round%2 == 1 {
						ann.MustEval("type('saved, '); await autosave.flushNow(); null", nil)
					}
					ann.MustEval("type('"+word+"'); null", nil)
					w.WaitStored(t, word, browser.Limit)
					w.Restart(t, signal)
					w.assertLeft(t, s.project(root, "Ann"), endings.Unsaved, word, "content")
				})
			})
		}
	})
}

// localStorage has no room: text of a page that was closed is kept all the same. A page that came before it was full has room
// for its last words reserved; one that came later has its journal.
func TestNothingLostWhenLocalStorageIsFull(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, s setup) {
		w := open(t, quick)
		for _, before := range []bool{true, false} {
			t.Run(fmt.Sprintf("full before: %v", before), func(t *testing.T) {
				eachEnding(t, func(t *testing.T, end endings.Ending, _ int, root string) {
					word := endings.Word()
					ann := w.tab(t, "")
					ann.MustEval("localStorage.clear(); null", nil)
					beginFull(ann, s.project(root, "Ann"), before)
					ann.MustEval("type('"+word+"'); null", nil)
					if before {
						w.WaitStored(t, word, browser.Limit)
					}
					end.EndAfter(t, w.Browser, ann, word)
					next := w.attacked(t, s.project(root, "Ann"), endings.Unsaved)
					endings.AssertFound(t, next, word, "content")
					next.MustEval("localStorage.clear(); await hf.close(); null", nil)
					next.Spare()
				})
			})
		}
	})
}

func beginFull(tab *browser.Tab, holdfast string, before bool) {
	begin(tab, "")
	tab.MustEval(editing, nil)
	tab.MustEval(attacking, nil)
	start := "await start(" + holdfast + "); await edit(" + endings.Unsaved + "); "
	if before {
		tab.MustEval("full(); "+start+"null", nil)
	} else {
		tab.MustEval(start+"full(); null", nil)
	}
}

// A document larger than localStorage loses nothing either: neither a word in the midst of it, typed a moment before the page
// ends, nor a whole text that was put in.
func TestNothingLostOfLargeDocument(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, s setup) {
		w := open(t, quick)
		for _, whole := range []bool{false, true} {
			t.Run(fmt.Sprintf("whole: %v", whole), func(t *testing.T) {
				eachEnding(t, func(t *testing.T, end endings.Ending, _ int, root string) {
					word := endings.Word()
					ann := w.attacked(t, s.project(root, "Ann"), endings.Unsaved)
					ann.MustEval("const large = n => 'a line of sixteen'.repeat(n * 65536)", nil)
					if whole {
						ann.MustEval("text = large(6); type('"+word+"'); null", nil)
						w.WaitStored(t, word, browser.Limit)
					} else {
						ann.MustEval("text = large(6); autosave.markDirty(); await autosave.flushNow(); text = large(3) + '"+word+"' + large(3); autosave.markDirty(); null", nil)
					}
					end.EndAfter(t, w.Browser, ann, word)
					ben := w.attacked(t, s.project(root, "Ben"), endings.Unsaved)
					endings.AssertFound(t, ben, word, "content")
					same := browser.Get[bool](ben, "(await current()).replace('"+word+"', '') === 'a line of sixteen'.repeat(6 * 65536)")
					assert.True(t, same, "the text around the word is the same")
					ben.MustEval("await hf.close(); null", nil)
					ben.Spare()
					ann.Spare()
				})
			})
		}
	})
}

// A page in the back/forward cache is thrown away there, or comes back: what was typed before is kept, and is not put over what
// others saved meanwhile.
func TestNothingLostInBackForwardCache(t *testing.T) {
	t.Parallel()
	w := open(t, whole)
	eachSetup(t, func(t *testing.T, s setup) {
		eachRound(t, 2, 20, func(t *testing.T, round int, root string) {
			word := endings.Word()
			ann := w.attacked(t, s.project(root, "Ann"), endings.Unsaved)
			ann.MustEval("globalThis.cached = 1; type('"+word+"'); null", nil)
			ann.Navigate(w.URL("/blank?elsewhere"))
			ben := w.attacked(t, s.project(root, "Ben"), endings.Unsaved)
			endings.AssertFound(t, ben, word, "content")
			ben.WaitFor("text.includes('"+word+"')", browser.Limit)
			ben.MustEval("type(', theirs'); await autosave.flushNow(); null", nil)
			if round%2 == 0 { // it comes back
				ann.MustEval("history.back(); null", nil)
				ann.WaitFor("globalThis.cached === 1 && autosave.readOnly", browser.Limit)
				ben.MustEval("await hf.close(); null", nil)
				ann.WaitFor("!autosave.readOnly && text === '"+word+", theirs'", browser.Limit)
				ann.MustEval("type('!'); await autosave.flushNow(); await hf.close(); null", nil)
			} else {
				ann.Close()
				ben.MustEval("await hf.close(); null", nil)
			}
			next := w.attacked(t, s.project(root, "Cleo"), endings.Unsaved)
			next.WaitFor("!autosave.readOnly && (await current()).startsWith('"+word+", theirs')", browser.Limit)
			next.MustEval("await hf.close(); null", nil)
			next.Close()
			ben.Close()
			if round%2 == 0 {
				ann.Close()
			}
		})
	})
}
