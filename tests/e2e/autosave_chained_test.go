package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// The page calls flushNow() twice and types on as another page asks for the lock. The first call is being saved and the text of the second
// one is pinned, so the last save before the handover has an older text than the page. The other page begins with the newest text.
func TestAutoSaveHandoverDuringChainedFlushes(t *testing.T) {
	t.Parallel()
	rounds := rounds(t, 10, 100)
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "chained " + host
		tabs := []*browser.Tab{w.editor(t, named(host, root, "Ann"), ""), w.editor(t, named(host, root, "Ben"), "")}
		want := ""
		for round := range rounds {
			editor, asker := tabs[round%2], tabs[(round+1)%2]
			editor.MustEval(fmt.Sprintf(`
				hf.addEventListener('lock:handover-requested', () => {
					type('%[1]d'); failure(autosave.flushNow())
					type('b'); failure(autosave.flushNow())
					type('c')
				}, {once: true})
				null`, round), nil)
			asker.MustEval("await autosave.requestEdit(); null", nil)
			want += fmt.Sprintf("%dbc", round)
			assert.Equal(t, want, browser.Get[string](asker, "text"), "round %d", round)
			if t.Failed() {
				return
			}
			editor.WaitFor("autosave.readOnly && heard('readonly').length > 0", browser.Limit)
			assert.Empty(t, browser.Get[[]string](editor, "offered"))
		}
		for _, tab := range tabs {
			assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
			tab.Quiet()
		}
	})
}
