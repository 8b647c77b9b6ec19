package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// Each call takes the page's text, also before the AutoSave is ready. Later steps of the same task change nothing of that. If `first` resolves, its
// generation contains "one".
func TestFlushBeforeReadySavesTheTextOfItsMoment(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		for name, c := range map[string]struct{ steps, current string }{
			"another flush":       {"text = 'two'; made.markDirty(); const second = made.flushNow(); text = ''", "two"},
			"two flushes, no end": {"text = 'two'; made.markDirty(); const second = made.flushNow(); text = 'three'; made.markDirty(); const third = made.flushNow(); text = ''", "three"},
			"typed on":            {"text = 'two'; made.markDirty()", "two"},
			"emptied and ended":   {"text = ''; made.dispose()", "one"},
			"typed on and ended":  {"text = 'two'; made.markDirty(); made.dispose(); text = ''", "two"},
			"emptied and closed":  {"text = ''; hf.close()", "one"},
		} {
			t.Run(name, func(t *testing.T) {
				root := "flush before ready " + host + " " + name
				tab := creating(t, w, host, root)
				tab.MustEval(`
					const made = create({debounceMs: 60_000, idleMs: 60_000})
					text = 'one'
					made.markDirty()
					const first = made.flushNow()
					`+c.steps+`
					const saved = await first.catch(() => undefined) // the end may come before it
					await Promise.all([typeof second === 'undefined' || second, typeof third === 'undefined' || third])
					await hf.close()
					const other = await openHoldfast({root: '`+root+`'}), reader = await other.initAutoSave(() => '', {standby: false})
					const read = async id => new TextDecoder().decode(await reader.read(id))
					result = [saved ? await read(saved.id) : 'one', await read('current')]
					await other.close()
					null`, nil)
				assert.Equal(t, []string{"one", c.current}, browser.Get[[]string](tab, "result"))
				assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
				tab.Quiet()
				tab.Spare()
			})
		}
	})
}

// The saved content is empty. The page types on its preview and calls flushNow(), and its editor is emptied in the same task. Text that is
// typed before the page may edit is a draft.
func TestFlushBeforeReadyOnAnEmptyPreview(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	holdfast := named("worker", "flush on an empty preview", "Ann")
	w.saves(t, holdfast, "{}", "")
	later, arrive := n.gated(holdfast)
	tab := w.earlyTab(t, later)
	tab.MustEval("edits("+onlyPreview+"); null", nil)
	tab.WaitFor("told.length === 1", browser.Limit)
	tab.MustEval("type('typed'); globalThis.flushing = failure(autosave.flushNow()); text = ''; null", nil)
	arrive()
	assert.Equal(t, "read-only", browser.Get[event](tab, "await flushing")["code"])
	tab.WaitFor("!autosave.readOnly", browser.Limit)
	assert.Equal(t, []string{"typed"}, browser.Get[[]string](tab, "await texts()"))
	quiet(t, tab)
}

// A page types before its AutoSave is ready, calls restore(), and shows something else in the same task. The text of the call is a draft.
func TestRestoreBeforeReadyKeepsTheTextOfItsMoment(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	for name, typed := range map[string]string{"on the preview": "saved, typed", "before the preview": ", typed"} {
		t.Run(name, func(t *testing.T) {
			holdfast := named("worker", "restore before ready "+name, "Ann")
			first := w.earlyTab(t, holdfast)
			first.MustEval("edits("+onlyPreview+"); await autosave.ready; type('saved'); globalThis.id = (await autosave.flushNow()).id; await hf.close(); null", nil)
			id := browser.Get[string](first, "id")
			first.Close()
			later, arrive := n.gated(holdfast)
			tab := w.earlyTab(t, later)
			begins := "edits(" + onlyPreview + "); "
			if name == "on the preview" {
				tab.MustEval(begins+"null", nil)
				tab.WaitFor("told.length === 1 && text === 'saved'", browser.Limit)
				begins = ""
			}
			tab.MustEval(begins+"type(', typed'); globalThis.restoring = autosave.restore('"+id+"'); text = 'one moment, please'; null", nil)
			arrive()
			tab.MustEval("text = new TextDecoder().decode(await restoring); null", nil)
			tab.WaitFor("(await texts()).length > 0", browser.Limit)
			assert.Equal(t, []string{typed}, browser.Get[[]string](tab, "await texts()"))
			assert.Equal(t, "saved", browser.Get[string](tab, "await current()"))
			quiet(t, tab)
		})
	}
}

// The snapshot is an object or an array of bytes of the page, which changes it after the call. The AutoSave is not ready yet.
func TestCallBeforeReadyCopiesTheSnapshot(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		for name, snapshot := range map[string]string{"object": "{text: 'typed'}", "bytes": "new TextEncoder().encode('typed')"} {
			for _, call := range []string{"autosave.flushNow()", "autosave.dispose()"} {
				root := fmt.Sprintf("copy before ready %s %s %s", host, name, call)
				later, arrive := n.gated(named(host, root, "Ann"))
				tab := w.earlyTab(t, later)
				tab.MustEval("globalThis.model = "+snapshot+"; edits("+onlyPreview+", undefined, () => model); null", nil)
				tab.WaitFor("autosave.kept", browser.Limit)
				tab.MustEval("autosave.markDirty(); globalThis.called = "+call+"; model.text ? model.text = '' : model.fill(0); null", nil)
				arrive()
				tab.MustEval("await called; null", nil)
				quiet(t, tab)
				want := map[string]string{"object": `{"text":"typed"}`, "bytes": "typed"}[name]
				w.finds(t, named(host, root, "Ben"), want)
			}
		}
	})
}
