package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A page calls flushNow(), shows another text and ends its AutoSave before Go has asked for the first text. flushNow() resolves only if that
// text is in the history.
func TestFlushThatAnEndOvertakes(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		for _, end := range []string{"made.dispose()", "hf.close()"} {
			root := "flush overtaken " + host + end
			tab := creating(t, w, host, root)
			tab.MustEval(`
				const made = create({debounceMs: 60_000, idleMs: 60_000})
				await made.ready
				await new Promise(done => made.addEventListener('autosave:editable', done))
				text = 'one'
				made.markDirty()
				const first = made.flushNow().catch(() => undefined)
				text = 'two'
				made.markDirty()
				for (let turns = 3; turns > 0; turns--) await undefined // Go has got the call
				const ended = `+end+`
				text = ''
				const saved = await first
				await ended
				await hf.close()
				const other = await openHoldfast({root: '`+root+`'}), reader = await other.initAutoSave(() => '', {standby: false})
				const read = async id => new TextDecoder().decode(await reader.read(id))
				result = [saved ? await read(saved.id) : 'one', await read('current')]
				await other.close()
				null`, nil)
			assert.Equal(t, []string{"one", "two"}, browser.Get[[]string](tab, "result"), end)
			assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
			tab.Quiet()
			tab.Spare()
		}
	})
}
