package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// The number of entries that no version can read, because their base generation is gone, is limited. Entries that a
// newer version may read stay. A readable entry stays too and becomes a draft.
func TestUnreadableRescueEntriesAreBounded(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	first := w.editor(t, "{}", "{}")
	first.MustEval("type('saved'); await autosave.flushNow(); await hf.close(); null", nil)
	first.MustEval(`{
		const put = (draft, more) => localStorage.setItem('holdfast:draft:project/autosave:' + draft, JSON.stringify({draft, number: 1, base: 'gone', at: 0, ownerId: 'x', binary: false,
			differences: [{base: '1-1', length: 9, prefix: 1, suffix: 1, insert: 'typed'}], ...more}))
		for (let i = 0; i < 20; i++) put('old-' + i, {at: i})
		put('newer', {format: 2})
		put('whole', {at: 99, differences: [{length: 0, prefix: 0, suffix: 0, insert: 'typed, whole'}]})
		localStorage.setItem('holdfast:draft:project/autosave:strange', '(another format)')
	} null`, nil)
	next := w.editor(t, "{}", "{}")
	next.MustEval("await autosave.drafts(); null", nil)
	left := browser.Get[[]string](next, "Object.keys(localStorage).filter(key => key.startsWith('holdfast:draft:')).map(key => key.split(':').pop()).sort()")
	assert.Equal(t, []string{"newer", "old-12", "old-13", "old-14", "old-15", "old-16", "old-17", "old-18", "old-19", "strange"}, left)
	assert.Equal(t, []string{"whole"}, browser.Get[[]string](next, "(await autosave.drafts()).map(({id}) => id)"))
	next.MustEval("await hf.close(); null", nil)
}
