package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
)

// pendingOnce returns snapshots as promises. After `pend = true`, the next one settles only when `settle` is called.
const pendingOnce = `
	Object.assign(globalThis, {pend: false, take: () => {
		const now = text
		if (!pend) return Promise.resolve(now)
		pend = false
		return new Promise(done => { globalThis.settle = () => done(now) })
	}})
	null`

// The snapshot of flushNow never settles, the user types nothing more, and the machine's clock is set back. The call rejects
// with an error that names the snapshot, and the text is stored and saved nevertheless.
func TestFlushedSnapshotThatNeverSettles(t *testing.T) {
	t.Parallel()
	eachHostAtOnce(t, func(t *testing.T, host string) {
		w := open(t, quick)
		tab, word := w.tab(t, named(host, "endless flush", "Ann")), endings.Word()
		tab.MustEval(endings.Editing, nil)
		tab.MustEval(pendingOnce, nil)
		tab.MustEval("await edit({}, take); type('"+word+"'); pend = true; result = failure(autosave.flushNow()); null", nil)
		tab.MustEval("const {now: clock} = Date; Date.now = () => clock() - 3_600_000; null", nil)
		w.WaitStored(t, word, browser.Limit)
		tab.WaitFor("heard('saved').length === 1 && autosave.state().phase === 'idle'", browser.Limit)
		assert.Equal(t, word, browser.Get[string](tab, "current()"))
		assert.Regexp(t, "^write-failed: .*snapshot", browser.Get[event](tab, "await result")["message"], "the error blames the store alone")
		tab.MustEval("await hf.close(); null", nil)
	})
}

// The snapshot of flushNow is late. Meanwhile the page loses the lock and shows the text of the page that edits. The late snapshot becomes
// the draft, and not the text that the page shows.
func TestLateSnapshotOfAPageThatShowsAnotherText(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "late flush " + host
		ann, ben := w.tab(t, named(host, root, "Ann")), w.tab(t, named(host, root, "Ben"))
		ann.MustEval(endings.Editing, nil)
		ann.MustEval(endings.Script, nil)
		ann.MustEval(pendingOnce, nil)
		ann.MustEval("await edit("+endings.Unsaved+", take); type('saved'); await autosave.flushNow(); null", nil)
		ann.MustEval(`
			autosave.addEventListener('autosave:readonly', () => { text = 'theirs' })
			type(', mine')
			pend = true
			autosave.flushNow().catch(() => undefined)
			null`, nil)
		ben.MustEval("lease = await hf.acquireProjectLock({steal: true}); null", nil)
		ann.WaitFor("text === 'theirs'", browser.Limit)
		ann.MustEval(`
			const clock = performance.now.bind(performance)
			performance.now = () => clock() + 60_000 // the snapshot is late
			dispatchEvent(new Event('pagehide')) // keeps what is unsaved
			await new Promise(done => setTimeout(done, 1000)) // text of a page that may not write is set aside
			settle()
			null`, nil)
		ann.WaitFor("await drafted('saved, mine')", browser.Limit)
		assert.InDelta(t, clock(), browser.Get[float64](ann, "(await autosave.drafts())[0].at"), 60_000, "the time of the draft")
		assert.Equal(t, "nowhere", browser.Get[string](ann, "await places('theirs')"))
		assert.NotContains(t, browser.Get[string](ann, "Object.values(localStorage).join()"), "theirs")
		ben.MustEval("await lease.release(); await hf.close(); null", nil)
		ann.MustEval("hf.close().catch(() => {}); null", nil)
	})
}
