package e2e

import (
	"testing"
	"time"

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
		assert.Less(t, shortest, 1000.0, "after a slow snapshot")
		assert.GreaterOrEqual(t, browser.Get[float64](tab, "pause(3)"), 1000.0, "after three")
		tab.MustEval("await hf.close(); null", nil)
	})
}

// A user types at the moment at which the lock is lost: Go learns of it too late to make a draft, and the page does not know
// yet that it may not write. The text is a draft nevertheless, although the user types nothing more.
func TestWordTypedAsTheLockIsLostIsADraft(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	ann, ben := w.editor(t, named("worker", "late word", "Ann"), endings.Unsaved), w.attacked(t, named("page", "late word", "Ben"), endings.Unsaved)
	ann.MustEval("type('saved'); await autosave.flushNow(); null", nil)
	ann.WorkerEval("const real = self.onmessage, held = []; self.onmessage = event => held.push(event); 1", nil)
	ann.MustEval("type(', late'); null", nil)
	ben.MustEval("lease = await hf.acquireProjectLock({steal: true}); null", nil)
	ann.WaitFor("heard('readonly').length === 1", browser.Limit)
	ann.WorkerEval("self.onmessage = real; for (const event of held) real(event); 1", nil)
	ben.WaitFor("await drafted('saved, late')", browser.Limit)
	ann.WaitFor("autosave.state().drafts === 1", browser.Limit)
	ben.MustEval("await hf.close(); null", nil)
	ann.MustEval("await failure(hf.close()); null", nil)
	ann.Quiet()
	ben.Quiet()
}

// A page's asynchronous snapshot never settles, once. The journal has the text that is typed afterwards nevertheless.
func TestJournalAfterSnapshotThatNeverSettles(t *testing.T) {
	t.Parallel()
	eachHost(t, func(t *testing.T, host string) {
		w := open(t, quick)
		tab := w.tab(t, named(host, "endless snapshot", "Ann"))
		tab.MustEval(endings.Editing, nil)
		tab.MustEval(`
			globalThis.endless = false
			const take = () => {
				if (!endless) return Promise.resolve(text)
				endless = false
				return new Promise(() => {})
			}
			await edit(`+endings.Unsaved+`, take)
			endless = true
			type('one'); null`, nil)
		tab.WaitFor("!endless", browser.Limit)
		word := endings.Word()
		tab.MustEval("type('"+word+"'); null", nil)
		w.WaitStored(t, word, 30*time.Second) // it is saved after 60 s
		tab.MustEval("hf.close().catch(() => {}); null", nil)
	})
}

// hangingDrafts never opens the file of a draft.
const hangingDrafts = `
if (globalThis.FileSystemFileHandle?.prototype.createSyncAccessHandle) {
	const open = FileSystemFileHandle.prototype.createSyncAccessHandle
	FileSystemFileHandle.prototype.createSyncAccessHandle = function () {
		return /^[0-9a-f]{8}-[0-9a-f]{4}-/.test(this.name) ? new Promise(() => {}) : open.call(this)
	}
}`

// The file of a draft cannot be opened for seconds, and the text is saved meanwhile. The page then keeps no draft of it: later pages would
// take it for text that nobody has saved.
func TestSavedTextIsNotKeptWhenItsDraftIsLate(t *testing.T) {
	t.Parallel()
	w := world{browser.Start(t, quick), browser.Serve(t, served(t, hangingDrafts))}
	eachHost(t, func(t *testing.T, host string) {
		root := "late draft " + host
		kept := "Object.keys(localStorage).filter(key => key.startsWith('holdfast:draft:" + root + "/'))"
		tab := w.editor(t, named(host, root, "Ann"), "{debounceMs: 60000, idleMs: 60000}")
		tab.WaitFor("heard('editable').length === 1", browser.Limit)
		tab.MustEval("type('saved'); await sleep(400); await autosave.flushNow(); await sleep(4500); null", nil) // the journal waits for 4 s
		assert.Empty(t, browser.Get[[]string](tab, kept))
		tab.MustEval("type(', not saved'); null", nil)
		tab.WaitFor(kept+".length === 1", browser.Limit)
	})
}

// The journal writes a text while a save of this text is under way. After the save, no later page takes it for text that nobody has saved.
func TestTextJournalledDuringItsSaveIsNoDraft(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	ann := w.editor(t, named("worker", "saved meanwhile", "Ann"), "{debounceMs: 1, journalMs: 2000}")
	ann.WaitFor("heard('editable').length === 1", browser.Limit)
	ann.WorkerEval(`
		const real = self.onmessage
		let answer, wrote
		const written = new Promise(done => { wrote = done })
		self.onmessage = event => {
			const {kind, method, arg} = event.data
			if (method === 'answer' && arg.bytes && !answer) return void (answer = event)
			real(event)
			if (answer && kind === 'journal' && method === 'write') wrote()
		}; 1`, nil)
	ann.MustEval("type('saved'); null", nil)
	ann.WorkerEval("await written; real(answer); 1", nil)
	ann.WaitFor("heard('saved').length === 1", browser.Limit)

	ben := w.editor(t, named("worker", "saved meanwhile", "Ben"), "")
	ben.MustEval("await autosave.requestEdit(); type(', by Ben'); await autosave.flushNow(); null", nil)
	ann.MustEval("await hf.close(); null", nil)
	assert.Empty(t, browser.Get[[]any](ben, "autosave.drafts()"))
	assert.Equal(t, "saved, by Ben", browser.Get[string](ben, "current()"))
}

// A save has written its index, and its page does not know that when the user undoes what is being saved. Then the page loses the lock, and
// dies or ends. The undone text is a draft, although it equals the content on which it was typed: the next editor makes it the content.
func TestTextUndoneDuringItsSaveIsADraft(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	for name, c := range map[string]struct{ options, save, end string }{
		"a journalled text":              {"{debounceMs: 500, journalMs: 20}", "", ""},
		"before the journal has it":      {"{debounceMs: 60000}", "autosave.flushNow().catch(() => {}); ", ""},
		"before the journal has it, end": {"{debounceMs: 60000}", "autosave.flushNow().catch(() => {}); ", "await failure(autosave.dispose()); null"},
	} {
		t.Run(name, func(t *testing.T) {
			root := "undone " + name
			ann, ben := w.editor(t, named("worker", root, "Ann"), c.options), w.tab(t, named("worker", root, "Ben"))
			ann.MustEval("type('saved'); await autosave.flushNow(); null", nil)
			ann.WorkerEval(`
				const {keys} = FileSystemDirectoryHandle.prototype
				let listings = 0, written, goOn
				const writes = new Promise(done => { written = done }), goes = new Promise(done => { goOn = done })
				FileSystemDirectoryHandle.prototype.keys = async function * () {
					if (this.name === 'index' && ++listings === 2) {
						written()
						await goes
					}
					yield * keys.call(this)
				}; 1`, nil)
			ann.MustEval("type(', secret'); "+c.save+"null", nil)
			ann.WorkerEval("await writes; 1", nil)
			ann.MustEval("text = 'saved'; autosave.markDirty(); await sleep(100); null", nil)
			ben.MustEval("lease = await hf.acquireProjectLock({steal: true}); null", nil)
			ann.WaitFor("heard('readonly').length === 1", browser.Limit)
			ann.WorkerEval("goOn(); 1", nil)
			if c.end == "" {
				ann.Crash()
			} else {
				ann.MustEval(c.end, nil)
				ann.Close()
			}
			ben.MustEval("await lease.release(); null", nil)

			cleo := w.editor(t, named("worker", root, "Cleo"), "")
			assert.Equal(t, "saved", browser.Get[string](cleo, "current()"))
			assert.Equal(t, []string{"saved", "saved, secret", "saved"}, browser.Get[[]string](cleo, "Promise.all((await autosave.history()).map(({id}) => autosave.read(id).then(decode)))"))
		})
	}
}

// A page without a journal saves twice, and the user undoes the change of the first save before that ends. The page loses the lock during the
// second save, and dies. The undone text is a draft, although it equals the content on which it was typed, also if the clock is set back
// meanwhile.
func TestTextUndoneBeforeItsSecondSaveIsADraft(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	const undo = "text = 'saved'; autosave.markDirty(); autosave.flushNow().catch(() => {}); "
	for name, undo := range map[string]string{
		"undone twice":           undo,
		"undone twice, set back": "const {now} = Date; Date.now = () => now() + 3_600_000; " + undo + "Date.now = now; ",
	} {
		t.Run(name, func(t *testing.T) {
			ann, ben := w.editor(t, named("worker", name, "Ann"), "{debounceMs: 60000, journalMs: 0}"), w.tab(t, named("worker", name, "Ben"))
			ann.MustEval("type('saved'); await autosave.flushNow(); null", nil)
			ann.WorkerEval(`
				const {keys} = FileSystemDirectoryHandle.prototype
				const gate = () => { const one = {}; one.reached = new Promise(done => { one.reach = done }); one.open = new Promise(done => { one.goOn = done }); return one }
				let listings = 0
				const first = gate(), second = gate()
				FileSystemDirectoryHandle.prototype.keys = async function * () {
					const at = this.name === 'index' ? {2: first, 3: second}[++listings] : undefined
					at?.reach()
					await at?.open
					yield * keys.call(this)
				}; 1`, nil)
			ann.MustEval("type(', secret'); autosave.flushNow().catch(() => {}); null", nil)
			ann.WorkerEval("await first.reached; 1", nil)
			ann.MustEval(undo+"null", nil)
			ann.WorkerEval("first.goOn(); await second.reached; 1", nil)
			ann.WaitFor("heard('saved').length === 2", browser.Limit)
			ben.MustEval("lease = await hf.acquireProjectLock({steal: true}); null", nil)
			ann.WaitFor("heard('readonly').length === 1", browser.Limit)
			ann.Crash()
			ben.MustEval("await lease.release(); null", nil)

			cleo := w.editor(t, named("worker", name, "Cleo"), "")
			assert.Equal(t, "saved", browser.Get[string](cleo, "current()"))
		})
	}
}
