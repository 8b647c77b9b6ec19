package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// handles prepares a page that creates AutoSaves at once.
const handles = `
const {createHoldfast, AutoSaveError} = await import('/holdfast.js')
let text = ''
const heard = []
const create = (options, holdfast = hf) => {
  const made = holdfast.createAutoSave(() => text, {debounceMs: 20, idleMs: 50, ...options})
  for (const type of ['editable', 'readonly', 'saved', 'draft']) made.addEventListener('autosave:' + type, e => {
    heard.push({type, same: e.target === made})
    if (type === 'editable' && e.detail.content) text = new TextDecoder().decode(e.detail.content)
  })
  return made
}
const saved = root => openHoldfast({root}).then(async other => {
  const reader = await other.initAutoSave(() => '', {standby: false})
  const read = await reader.read('current').then(b => new TextDecoder().decode(b), e => e.code)
  const drafts = (await reader.drafts()).length
  await other.close()
  return [read, drafts]
})
null`

func creating(t *testing.T, w world, host, root string) *browser.Tab {
	t.Helper()
	tab := w.tab(t, "")
	tab.MustEval(handles, nil)
	tab.MustEval("hf = createHoldfast("+at(host, root)+"); null", nil)
	return tab
}

func TestCreatedHandlesAnswerAtOnce(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		tab := creating(t, w, host, "handles-"+host)
		tab.MustEval(`
			const made = create()
			const at = [made.readOnly, made.lease === undefined, made.state().phase, made.state() === made.state(), made instanceof EventTarget]
			let changes = 0
			made.subscribe(() => changes++)
			await made.ready`, nil)
		assert.Equal(t, []any{true, true, "awaiting-lock", true, true}, browser.Get[[]any](tab, "at"))
		tab.WaitFor("heard.some(({type, same}) => type === 'editable' && same) && changes > 0", browser.Limit)
		assert.False(t, browser.Get[bool](tab, "made.readOnly"))
		tab.MustEval("text = 'typed'; made.markDirty(); result = await made.flushNow(); await made.dispose(); await hf.close()", nil)
		assert.Equal(t, []any{"typed", 0.0}, browser.Get[[]any](tab, "await saved('handles-"+host+"')"))
		tab.Quiet()
	})
}

// Nothing was saved before, so the text that is typed while the runtime loads is the document.
func TestTextTypedBeforeReadyIsSaved(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		for _, ending := range []string{"await made.dispose()", "await hf.close()", "await made.flushNow(); await hf.close()"} {
			root := "early-" + host + ending[6:10] + ending[10:16]
			tab := creating(t, w, host, root)
			tab.MustEval("const made = create(); text = 'early'; made.markDirty(); const end = (async () => { "+ending+" })(); text = 'emptied'; await end; await hf.close()", nil)
			assert.Equal(t, []any{"early", 0.0}, browser.Get[[]any](tab, "await saved('"+root+"')"), ending)
			tab.Quiet()
			tab.Spare()
		}
	})
}

// A document with content keeps it. Text that was typed before the page had that content is a draft.
func TestTextTypedBeforeTheContentIsADraft(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "drafted-" + host
		tab := creating(t, w, host, root)
		tab.MustEval("let made = create(); await made.ready; text = 'there'; made.markDirty(); await made.flushNow(); await hf.close()", nil)
		tab.MustEval("hf = createHoldfast("+at(host, root)+"); made = create(); text = 'early'; made.markDirty(); result = await failure(made.dispose()); await hf.close()", nil)
		assert.Equal(t, "read-only", browser.Get[event](tab, "result")["code"])
		assert.True(t, browser.Get[bool](tab, "await failure(made.dispose()).then(f => f.name === 'AutoSaveError')"))
		assert.Equal(t, []any{"there", 1.0}, browser.Get[[]any](tab, "await saved('"+root+"')"))
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
		tab.Quiet()
	})
}

// This is an effect and its cleanup: an AutoSave that is disposed before it is ready leaves nothing behind, and the
// next one edits.
func TestDisposeBeforeReady(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		tab := creating(t, w, host, "undone-"+host)
		tab.MustEval(`
			const first = create()
			const stop = new AbortController(), second = create({signal: stop.signal})
			const undone = [first.dispose(), first.ready.catch(e => e.code), second.ready.catch(e => e.code), first.flushNow().catch(e => e.code)]
			stop.abort()
			const third = create()
			await third.ready`, nil)
		assert.Equal(t, []any{nil, "aborted", "aborted", "aborted"}, browser.Get[[]any](tab, "await Promise.all(undone)"))
		assert.False(t, browser.Get[bool](tab, "third.readOnly"))
		assert.Equal(t, "aborted", browser.Get[string](tab, "await hf.initAutoSave(() => '', {signal: AbortSignal.abort()}).catch(e => e.code)"))
		tab.MustEval("await third.dispose()", nil)
		assert.Equal(t, 0, browser.Get[int](tab, "(await hf.inspect()).held.length"))
		tab.MustEval("const fourth = create(); await fourth.ready; fourth.dispose(); await hf.close()", nil)
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
		eventually(t, func() bool { return tab.Workers() == 0 }, "a worker is left")
		tab.Quiet()
	})
}

func TestSignalClosesAHoldfast(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		tab := w.tab(t, "")
		tab.MustEval(handles, nil)
		tab.MustEval("const stop = new AbortController(); hf = createHoldfast({host: '"+host+"', signal: stop.signal}); const made = create(); stop.abort()", nil)
		assert.Equal(t, []string{"aborted", "aborted", "aborted"}, browser.Get[[]string](tab, "await Promise.all([hf.ready, made.ready, hf.acquireProjectLock()].map(p => p.catch(e => e.code)))"))
		assert.Equal(t, "aborted", browser.Get[string](tab, "await openHoldfast({signal: AbortSignal.abort()}).catch(e => e.code)"))
		assert.Equal(t, "aborted", browser.Get[string](tab, "await createHoldfast({signal: AbortSignal.abort()}).ready.catch(e => e.code)"))
		assert.Contains(t, browser.Get[string](tab, "(() => { try { createHoldfast({signal: 1}) } catch (e) { return e.message } })()"), "invalid-argument: signal")
		assert.Contains(t, browser.Get[string](tab, "(() => { try { createHoldfast({host: 'moon'}) } catch (e) { return e.message } })()"), "invalid-argument: host")
		eventually(t, func() bool { return tab.Workers() == 0 }, "a worker is left")
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
		tab.Quiet()
	})
}

// A read-only page keeps the text that is typed in it: everybody sees the draft, and the page gets an event.
func TestMarkedReadOnlyPageKeepsADraft(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "marked-" + host
		ann := creating(t, w, host, root)
		ann.MustEval("const made = create(); await made.ready; text = 'there'; made.markDirty(); await made.flushNow()", nil)
		ben := creating(t, w, host, root)
		ben.MustEval("const made = create(); await made.ready; text = 'mine'; made.markDirty()", nil)
		ben.WaitFor("heard.some(({type}) => type === 'draft') && made.state().drafts === 1", browser.Limit)
		for _, tab := range []*browser.Tab{ann, ben} {
			assert.Equal(t, []string{"mine lock-lost"}, browser.Get[[]string](tab,
				"await Promise.all((await made.drafts()).map(async d => new TextDecoder().decode(await made.read(d.id)) + ' ' + d.cause))"))
		}
		// More typing changes the same draft.
		ben.MustEval("heard.length = 0; text = 'mine, too'; made.markDirty()", nil)
		ben.WaitFor("heard.some(({type}) => type === 'draft')", browser.Limit)
		assert.Equal(t, []string{"mine, too"}, browser.Get[[]string](ann,
			"await Promise.all((await made.drafts()).map(async d => new TextDecoder().decode(await made.read(d.id))))"))
		// The next editor gets the content, and the draft waits for a decision.
		ann.MustEval("await made.dispose()", nil)
		ben.WaitFor("!made.readOnly && text === 'there'", browser.Limit)
		assert.Equal(t, 1, browser.Get[int](ben, "(await made.drafts()).length"))
		ben.MustEval("await made.resolveDraft((await made.drafts())[0].id, 'content'); result = new TextDecoder().decode(await made.read('current'))", nil)
		assert.Equal(t, "mine, too", browser.Get[string](ben, "result"))
		assert.Empty(t, browser.Get[[]string](ben, "uncaught"))
		ann.Quiet()
		ben.Quiet()
	})
}

// The warning says what to do, and comes only if the first AutoSave is still alive.
func TestDocumentOpenTwiceInAPage(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := creating(t, w, "worker", "twice")
	tab.MustEval("const warnings = []; console.warn = text => warnings.push(text)", nil)
	tab.MustEval("const one = create(); one.dispose(); const two = create({path: ['a']}), three = create({path: ['b']}); await two.ready; await three.ready; two.dispose(); const four = create({path: ['a']}); await four.ready", nil)
	assert.Empty(t, browser.Get[[]string](tab, "warnings"))
	tab.MustEval("const five = create({path: ['a']}); await five.ready", nil)
	warnings := browser.Get[[]string](tab, "warnings")
	require.Len(t, warnings, 1)
	assert.Contains(t, warnings[0], "open twice in this page")
	assert.Contains(t, warnings[0], "dispose()")
	tab.MustEval("await hf.close()", nil)
	tab.Quiet()
}

// The test imports the folder of a built package as a program on a server does.
func TestPackageIsImportedOnAServer(t *testing.T) {
	t.Parallel()
	module, err := filepath.Abs(siteDir + "/holdfast.js")
	require.NoError(t, err)
	script := `
		const before = Object.keys(globalThis).length
		const {openHoldfast, createHoldfast, ProjectLockError} = await import(process.argv[1])
		const say = promise => promise.then(() => "fulfilled", (e) => e instanceof ProjectLockError ? e.code + " " + e.message : String(e))
		console.log(Object.keys(globalThis).length - before)
		console.log(await say(openHoldfast()))
		const holdfast = createHoldfast({baseURL: "/assets/", server: {url: "/holdfast/"}})
		const autosave = holdfast.createAutoSave(() => "")
		console.log(await say(holdfast.ready), await say(autosave.ready), await say(holdfast.acquireProjectLock()), await say(holdfast.locks.query()), autosave.readOnly)
		await autosave.dispose()
		await holdfast.close()
		try { createHoldfast({host: "moon"}) } catch (e) { console.log(e.code) }`
	out, err := exec.Command("node", "--input-type=module", "-e", script, module).CombinedOutput()
	require.NoError(t, err, "%s", out)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(t, lines, 4, "%s", out)
	assert.Equal(t, "0", lines[0])
	assert.Regexp(t, "^unsupported unsupported: this is a server", lines[1])
	assert.Equal(t, 4, strings.Count(lines[2], "this is a server"), lines[2])
	assert.True(t, strings.HasSuffix(lines[2], " true"))
	assert.Equal(t, "invalid-argument", lines[3])
}

func TestAwaitUsing(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := w.tab(t, "")
	tab.MustEval(`
		delete Symbol.asyncDispose // as in engines without it
		const {createHoldfast} = await import('/holdfast.js?lacking')
		const dispose = Symbol.asyncDispose
		const hf2 = createHoldfast({root: 'using'})
		const taken = await hf2.acquireProjectLock({path: ['elsewhere'], mode: 'shared'}), made = hf2.createAutoSave(() => 'x')
		await made.ready
		const all = [taken, made, hf2].map(one => typeof one[dispose])
		await taken[dispose](); await made[dispose](); await hf2[dispose]()`, nil)
	assert.Equal(t, []string{"function", "function", "function"}, browser.Get[[]string](tab, "all"))
	assert.True(t, browser.Get[bool](tab, "taken.signal.aborted && await hf2.ready.then(() => hf2.inspect()).catch(e => e.code === 'aborted')"))
	tab.Quiet()
}

// flushes are calls of flushNow before an AutoSave is ready. The last text of each is "two".
var flushes = map[string]string{
	"two flushes":            "text = 'one'; made.markDirty(); made.flushNow(); text = 'two'; made.markDirty(); const end = made.flushNow(); text = 'emptied'; await end",
	"typed as it is ready":   "made.ready.then(() => { text = 'two'; made.markDirty() }); text = 'one'; made.markDirty(); await made.flushNow(); await made.flushNow()",
	"flushed as it is ready": "let end; made.ready.then(() => { text = 'two'; made.markDirty(); end = made.flushNow() }); text = 'one'; made.markDirty(); await made.flushNow(); await end",
	"flushed after its end":  "text = 'two'; made.markDirty(); const end = made.dispose(); text = 'emptied'; made.flushNow().catch(() => {}); await end",
}

// Each call saves the text of its moment, in whatever order the calls and the beginning of the AutoSave come.
func TestFlushesBeforeReady(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		for name, steps := range flushes {
			t.Run(name, func(t *testing.T) {
				root := "flushes " + host + " " + name
				tab := creating(t, w, host, root)
				tab.MustEval("const made = create(); "+steps+"; await hf.close()", nil)
				assert.Equal(t, []any{"two", 0.0}, browser.Get[[]any](tab, "await saved('"+root+"')"))
				assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
				tab.Quiet()
				tab.Spare()
			})
		}
	})
}

// An AutoSave that its page has ended tells no later listener that the page may edit.
func TestNoEditableAfterTheEnd(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		for _, end := range []string{"made.dispose()", "hf.close()"} {
			tab := creating(t, w, host, "ended-"+host+end)
			tab.MustEval(`
				const made = create()
				await new Promise(done => made.addEventListener('autosave:editable', done))
				const late = [], hear = () => made.addEventListener('autosave:editable', ({type}) => late.push(type))
				hear() // its task comes after the end
				const ended = `+end+`
				hear()
				await ended
				hear()
				await new Promise(done => setTimeout(done, 100))
				null`, nil)
			assert.Empty(t, browser.Get[[]string](tab, "late"), end)
			assert.True(t, browser.Get[bool](tab, "made.readOnly"))
			tab.MustEval("await hf.close(); null", nil)
			tab.Quiet()
			tab.Spare()
		}
	})
}
