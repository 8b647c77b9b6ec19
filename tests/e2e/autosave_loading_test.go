package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
)

// A person who discards a draft does not discard text that was typed after the draft was sealed.
func TestDiscardSparesWhatIsTypedSince(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "discard " + host
		// The journal waits, or it would open the sealed draft again while that is discarded.
		ann, ben := w.attacked(t, named(host, root, "Ann"), "{...("+endings.Unsaved+"), journalMs: 60000}"), w.tab(t, named(host, root, "Ben"))
		ann.MustEval("type('first'); null", nil)
		ben.MustEval("lease = await hf.acquireProjectLock({steal: true}); null", nil)
		ann.WaitFor("autosave.readOnly && (await autosave.drafts()).length === 1", browser.Limit)
		ann.MustEval("const [draft] = await autosave.drafts(); type(' and since'); await autosave.resolveDraft(draft.id, 'discard'); setTimeout(() => location.replace('/blank?left')); null", nil)
		ann.WaitFor("location.search === '?left'", browser.Limit)
		next := w.attacked(t, named(host, root, "Cem"), endings.Unsaved)
		next.WaitFor("await drafted('and since')", browser.Limit)
		ben.MustEval("await lease.release(); await hf.close(); null", nil)
		next.MustEval("await hf.close(); null", nil)
		for _, tab := range []*browser.Tab{ann, ben, next} {
			tab.Close()
		}
	})
}

// A page that ends, or saves, while its editor loads the content leaves no half of it behind: neither as a draft nor as the content.
func TestHalfLoadedTextIsNotKept(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		for name, end := range map[string]string{"left": "", "disposed": "autosave.dispose().catch(() => {}); ", "flushed": "autosave.flushNow().catch(() => {}); "} {
			t.Run(name, func(t *testing.T) {
				root := "half " + host + " " + name
				tab := w.attacked(t, named(host, root, "Ann"), "")
				other := w.editor(t, named(host, root, "Ben"), "")
				other.MustEval("await autosave.requestEdit(); type('whole text'); await autosave.flushNow(); null", nil)
				tab.WaitFor("autosave.readOnly", browser.Limit)
				tab.MustEval(fmt.Sprintf(`autosave.addEventListener('autosave:editable', ({detail}) => {
					detail.waitUntil(new Promise(() => {}))
					text = 'half'
					autosave.markDirty()
					%ssleep(400).then(() => location.replace('/blank?left'))
				}); null`, end), nil)
				other.MustEval("hf.close(); null", nil)
				tab.WaitFor("location.search === '?left'", browser.Limit)
				next := w.attacked(t, named(host, root, "Cem"), "")
				next.WaitFor("!autosave.readOnly && heard('editable').length === 1", browser.Limit)
				assert.Equal(t, "whole text", browser.Get[string](next, "current()"))
				assert.Equal(t, "nowhere", browser.Get[string](next, "await places('half')"))
				next.MustEval("await hf.close(); null", nil)
				next.Close()
				tab.Close()
				other.Close()
			})
		}
	})
}
