package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A tab is closed, reloaded or navigated a moment after text was typed: the text is saved. A tab that crashes loses
// only the text that was typed since the last pause.
func TestAutoSaveTabsLeaveWhileTyping(t *testing.T) {
	t.Parallel()
	rounds := rounds(t, 2, 50)
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		for name, leave := range map[string]func(*browser.Tab){
			"closed":    (*browser.Tab).Close,
			"reloaded":  (*browser.Tab).Reload,
			"navigated": func(tab *browser.Tab) { tab.Navigate(w.URL("/blank?elsewhere")) },
			"crashed":   (*browser.Tab).Crash,
		} {
			t.Run(name, func(t *testing.T) {
				root := "leave " + host + " " + name
				for round := range rounds {
					tab := w.editor(t, named(host, root, "Ann"), "")
					tab.MustEval(fmt.Sprintf("text = 'paused %d'; autosave.markDirty(); await autosave.flushNow(); null", round), nil)
					tab.MustEval("type(', typed a moment ago'); null", nil)
					time.Sleep(time.Duration(round*37%100) * time.Millisecond)
					leave(tab)
					next := w.editor(t, named(host, root, "Ben"), "")
					next.WaitFor("!autosave.readOnly", browser.Limit)
					next.WaitFor("heard('editable').length > 0", browser.Limit)
					want := fmt.Sprintf("paused %d, typed a moment ago", round)
					if name == "crashed" {
						want = want[:len("paused 0")]
						require.Contains(t, browser.Get[string](next, "text"), want)
					} else {
						require.Equal(t, want, browser.Get[string](next, "text"), "round %d", round)
						require.Equal(t, want, browser.Get[string](next, "current()"))
					}
					next.Spare()
					tab.Spare()
				}
			})
		}
	})
}

// A page in the back/forward cache keeps nobody waiting. When it comes back, it has the text that was saved
// meanwhile.
func TestAutoSaveBackForwardCache(t *testing.T) {
	t.Parallel()
	w := open(t, whole)
	eachHost(t, func(t *testing.T, host string) {
		root := "cache " + host
		ann := w.editor(t, named(host, root, "Ann"), "")
		ben := w.editor(t, named(host, root, "Ben"), "")
		ann.MustEval("globalThis.cached = 1; type('written before'); null", nil)
		left := ben.Now()
		ann.Navigate(w.URL("/blank?elsewhere"))
		ben.WaitFor("!autosave.readOnly", browser.Limit)
		t.Logf("the next one edits %.0f ms later", ben.Now()-left)
		assert.Equal(t, "written before", browser.Get[string](ben, "text"))
		ben.MustEval("type(', and after'); await autosave.flushNow(); null", nil)

		if !back(t, ann) {
			return
		}
		ann.WaitFor("autosave.readOnly && autosave.state().holder?.ownerName === 'Ben'", browser.Limit)
		ben.MustEval("await autosave.dispose(); null", nil)
		ann.WaitFor("!autosave.readOnly && text === 'written before, and after'", browser.Limit)
		ann.MustEval("type('!'); await autosave.flushNow(); null", nil)

		// Alone, the page comes back as the editor.
		ann.Navigate(w.URL("/blank?elsewhere"))
		if !back(t, ann) {
			return
		}
		ann.WaitFor("!autosave.readOnly", browser.Limit)
		ann.MustEval("type('!'); await autosave.flushNow(); null", nil)
		assert.Equal(t, "written before, and after!!", browser.Get[string](ann, "current()"))
		assert.Empty(t, browser.Get[[]string](ann, "uncaught"))
	})
}

// The browser discards a page in the back/forward cache, here because it holds a lock of its own that another page wants. What
// was typed in it is saved.
func TestAutoSaveDiscardedInTheCache(t *testing.T) {
	t.Parallel()
	w := open(t, whole)
	ann := w.editor(t, named("worker", "discarded", "Ann"), "")
	ann.MustEval("globalThis.cached = 1; navigator.locks.request('wanted', () => new Promise(() => {})); type('written before'); null", nil)
	ann.Navigate(w.URL("/blank?elsewhere"))
	ben := w.editor(t, named("worker", "discarded", "Ben"), "")
	ben.MustEval("await navigator.locks.request('wanted', () => {}); null", nil)
	ben.WaitFor("!autosave.readOnly && text === 'written before'", browser.Limit)
	assert.False(t, back(t, ann))
}

// A page saves, types and ends, without waiting for the save: what it has typed since is saved too.
func TestDisposeDuringFlush(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "ends while it saves " + host
		ann := w.editor(t, named(host, root, "Ann"), "")
		ann.MustEval("type('one'); failure(autosave.flushNow()); type(' two'); globalThis.ended = await failure(autosave.dispose())", nil)
		assert.NotContains(t, browser.Get[map[string]any](ann, "ended"), "code")
		ben := w.editor(t, named(host, root, "Ben"), "")
		assert.Equal(t, "one two", browser.Get[string](ben, "current()"))
		history := browser.Get[[]map[string]any](ben, "autosave.history()")
		assert.Len(t, history, 1, "no draft was made a generation")
	})
}
