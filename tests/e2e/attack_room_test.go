package e2e

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// The browser is ended by the system, orderly or not. No page hears of it.
func TestNothingLostByEndOfBrowser(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, s setup) {
		w := open(t, quick)
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			t.Run(signal.String(), func(t *testing.T) {
				eachRound(t, 1, 20, func(t *testing.T, round int, root string) {
					word := word()
					ann := w.attacked(t, s.project(root, "Ann"), unsaved)
					if round%2 == 1 {
						ann.MustEval("type('saved, '); await autosave.flushNow(); null", nil)
					}
					ann.MustEval("type('"+word+"'); null", nil)
					w.WaitStored(t, word, browser.Limit)
					w.Restart(t, signal)
					next := w.attacked(t, s.project(root, "Ann"), unsaved)
					assertFound(t, next, word, "content")
					next.MustEval("await hf.close(); null", nil)
					next.Spare()
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
		for _, end := range departures {
			for _, before := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, full before: %v", end.name, before), func(t *testing.T) {
					eachRound(t, 1, 20, func(t *testing.T, _ int, root string) {
						word := word()
						ann := w.tab(t, "")
						ann.MustEval("localStorage.clear(); null", nil)
						beginFull(ann, s.project(root, "Ann"), before)
						ann.MustEval("type('"+word+"'); null", nil)
						if before || end.abrupt {
							w.WaitStored(t, word, browser.Limit)
						}
						end.leave(w, ann)
						next := w.attacked(t, s.project(root, "Ann"), unsaved)
						assertFound(t, next, word, "content")
						next.MustEval("localStorage.clear(); await hf.close(); null", nil)
						next.Spare()
					})
				})
			}
		}
	})
}

func beginFull(tab *browser.Tab, holdfast string, before bool) {
	begin(tab, "")
	tab.MustEval(editing, nil)
	tab.MustEval(attacking, nil)
	start := "await start(" + holdfast + "); await edit(" + unsaved + "); "
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
		for _, end := range departures {
			for _, whole := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, whole: %v", end.name, whole), func(t *testing.T) {
					eachRound(t, 1, 20, func(t *testing.T, _ int, root string) {
						word := word()
						ann := w.attacked(t, s.project(root, "Ann"), unsaved)
						ann.MustEval("const large = n => 'a line of sixteen'.repeat(n * 65536)", nil)
						if whole {
							ann.MustEval("text = large(6); type('"+word+"'); null", nil)
						} else {
							ann.MustEval("text = large(6); autosave.markDirty(); await autosave.flushNow(); text = large(3) + '"+word+"' + large(3); autosave.markDirty(); null", nil)
						}
						if whole || end.abrupt {
							w.WaitStored(t, word, browser.Limit)
						}
						end.leave(w, ann)
						next := w.attacked(t, s.project(root, "Ben"), unsaved)
						assertFound(t, next, word, "content")
						next.MustEval("await hf.close(); null", nil)
						next.Spare()
						ann.Spare()
					})
				})
			}
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
			word := word()
			ann := w.attacked(t, s.project(root, "Ann"), unsaved)
			ann.MustEval("globalThis.cached = 1; type('"+word+"'); null", nil)
			ann.Navigate(w.URL("/blank?elsewhere"))
			ben := w.attacked(t, s.project(root, "Ben"), unsaved)
			assertFound(t, ben, word, "content")
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
			next := w.attacked(t, s.project(root, "Cleo"), unsaved)
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
