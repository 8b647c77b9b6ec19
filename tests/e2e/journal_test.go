package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
)

// A single slow snapshot does not delay the next one, because the machine may be busy. Three slow ones in a row do:
// the journal uses at most a twentieth of the page's time.
func TestJournalAfterSlowSnapshots(t *testing.T) {
	t.Parallel()
	eachHost(t, func(t *testing.T, host string) {
		w := open(t, quick)
		tab := w.tab(t, named(host, "slow snapshots", "Ann"))
		tab.MustEval(endings.Editing, nil)
		tab.MustEval(`
			let slow = 0
			const taken = []
			const take = () => {
				taken.push(performance.now())
				if (slow > 0) for (slow--; performance.now() < taken.at(-1) + 50;);
				return text
			}
			const next = async () => {
				for (const before = taken.length; taken.length === before;) {
					type('.')
					await new Promise(done => setTimeout(done, 5))
				}
			}
			// the pause between some slow snapshots and the next one
			const pause = async count => {
				for (let quick = 0; quick < 4; quick++) await next()
				slow = count
				for (let n = 0; n < count; n++) await next()
				const before = taken.at(-1)
				await next()
				return taken.at(-1) - before
			}
			await edit({debounceMs: 60000, idleMs: 60000, journalMs: 100}, take); null`, nil)
		shortest := browser.Get[float64](tab, "(async () => Math.min(await pause(1), await pause(1), await pause(1)))()")
		assert.Less(t, shortest, 500.0, "after a slow snapshot")
		assert.GreaterOrEqual(t, browser.Get[float64](tab, "pause(3)"), 1000.0, "after three")
		tab.MustEval("await hf.close(); null", nil)
	})
}
