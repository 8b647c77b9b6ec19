package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// slowStorage makes the list of databases and the list of a folder wait until `silent` is false. The first one takes Go ten seconds. Then
// too little time is left for the second one.
const slowStorage = `{
	globalThis.silent = true
	const once = async then => {
		while (silent) await new Promise(done => setTimeout(done, 20))
		return then()
	}
	const {databases} = IDBFactory.prototype, {keys} = FileSystemDirectoryHandle.prototype
	IDBFactory.prototype.databases = function () { return once(() => databases.call(this)) }
	FileSystemDirectoryHandle.prototype.keys = function () {
		const all = keys.call(this)
		return {next: () => once(() => all.next()), [Symbol.asyncIterator]() { return this }}
	}
}
null`

// Go refuses to begin in a page that edits early, because the storage is slow. The page is read-only until the storage answers. Then it edits
// and saves what was typed. Its calls wait for that, and it can end meanwhile.
func TestEarlyTakeoverIsRefusedForAWhile(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		root := "early refused for a while " + host
		later, arrive := n.gated(named(host, root, "Ann"))
		tab := w.earlyTab(t, later)
		tab.MustEval(`
			globalThis.whys = []
			edits({path: ['typed']})
			globalThis.clean = hf.createAutoSave(() => '', {path: ['clean']})
			for (const one of [autosave, clean]) one.addEventListener('autosave:readonly', ({detail}) => whys.push([detail.reason, detail.error.code]))
			null`, nil)
		tab.WaitFor("!clean.readOnly && !autosave.readOnly", browser.Limit)
		tab.MustEval("type('typed'); null", nil)
		if host == "page" {
			tab.MustEval(slowStorage, nil)
		} else {
			tab.EachWorkerEval(slowStorage)
		}
		arrive()
		tab.WaitFor("whys.length === 2", browser.Limit)
		refused := []string{"acquire-failed", "acquire-timeout"}
		assert.Equal(t, [][]string{refused, refused}, browser.Get[[][]string](tab, "whys"))
		assert.Nil(t, browser.Get[event](tab, "await failure(clean.dispose())")["code"], "nothing was typed: there is nothing to wait for")
		tab.MustEval("globalThis.flushing = autosave.flushNow(); flushing.catch(() => {}); null", nil)
		tab.EachWorkerEval("globalThis.silent = false; null")
		tab.MustEval("globalThis.silent = false; null", nil)
		tab.WaitFor("!autosave.readOnly && autosave.lease", browser.Limit)
		tab.MustEval("await flushing; null", nil)
		// Each attempt finds the text as a draft.
		assert.Equal(t, []string{"editable", "readonly", "editable", "saved"}, browser.Get[[]string](tab, "told.filter(one => one !== 'draft').filter((one, at, all) => one !== all[at - 1])"))
		assert.Equal(t, "typed", browser.Get[string](tab, "await current()"))
		assert.Empty(t, browser.Get[[]string](tab, "await texts()"))
		quiet(t, tab)
	})
}

// refusesOnce makes a worker refuse to begin an AutoSave once, as Go does when its storage is slow. Answers to later attempts are kept in
// `late`.
const refusesOnce = `
	globalThis.late = []
	globalThis.attempts = 0
	globalThis.adopted = () => []
	globalThis.refusal = 'acquire-timeout'
	const {postMessage} = Worker.prototype
	Worker.prototype.postMessage = function (message, ...more) {
		if (message.method !== 'autosave') return postMessage.call(this, message, ...more)
		const heard = this.onmessage
		if (attempts++ === 0) {
			setTimeout(() => heard.call(this, {data: {kind: 'several', messages: [
				...adopted(message),
				{kind: 'release', number: message.arg.lent.number},
				{kind: 'error', id: message.id, reason: {code: refusal, operation: 'acquire', retryable: refusal === 'acquire-timeout', message: 'planted'}},
			]}}))
			return
		}
		const answers = one => one.kind === 'several' ? one.messages.some(answers) : one.kind === 'result' && one.id === message.id
		this.onmessage = event => answers(event.data) ? late.push(() => heard.call(this, event)) : heard.call(this, event)
		postMessage.call(this, message, ...more)
	}
	null`

// refusedOnce opens a page that edits early and whose worker refuses to begin its AutoSave once. plan changes what the worker answers. The
// runtime comes when arrive is called.
func refusedOnce(t *testing.T, root, plan string) (tab *browser.Tab, arrive func()) {
	t.Helper()
	n, w := troubledNetwork(t)
	later, arrive := n.gated(named("worker", root, "Ann"))
	tab = w.Open(t, w.URL("/blank"))
	begin(tab, "")
	tab.MustEval(refusesOnce+"\n"+plan+"\nnull", nil)
	tab.MustEval("await start("+later+"); null", nil)
	tab.MustEval(early, nil)
	tab.MustEval("edits(); null", nil)
	tab.WaitFor("!autosave.readOnly", browser.Limit)
	return tab, arrive
}

// A page in which nothing was typed ends its AutoSave as Go begins at the second attempt. Go learns of the end.
func TestDisposeDuringTheSecondTakeover(t *testing.T) {
	t.Parallel()
	tab, arrive := refusedOnce(t, "second takeover", "")
	arrive()
	tab.WaitFor("late.length === 1", browser.Limit)
	tab.MustEval("await autosave.dispose(); late.forEach(answer => answer()); null", nil)
	if err := tab.Wait("(await locks()).held === 0", browser.Limit/6); err != nil {
		t.Errorf("Go keeps the lock: %v", err)
	}
	quiet(t, tab)
}

// Go finds what the page shows, and its time ends before it has got the page's answer. The page has no lock then, and learns it.
func TestTakeoverIsRefusedAfterItsContentWasFound(t *testing.T) {
	t.Parallel()
	tab, arrive := refusedOnce(t, "refused with its content", `
		adopted = ({client, arg: {saver}}) => [{kind: 'event', client, event: {type: 'autosave:editable', saver, ask: 1, base: '', drafts: [],
			state: {phase: 'idle', readOnly: false, pendingBytes: 0, retryCount: 0, storage: 'opfs', drafts: 0}}}]`)
	tab.MustEval("type('typed'); null", nil)
	arrive()
	tab.WaitFor("late.length === 1", browser.Limit)
	assert.Equal(t, []string{"editable", "readonly"}, browser.Get[[]string](tab, "told.slice(0, 2)"))
	tab.MustEval("late.forEach(answer => answer()); null", nil)
	tab.WaitFor("told.includes('saved') && !autosave.readOnly", browser.Limit)
	assert.Equal(t, "typed", browser.Get[string](tab, "await current()"))
	assert.Equal(t, []string{"editable", "readonly", "editable", "saved"}, browser.Get[[]string](tab, "told.filter((one, at) => one !== told[at - 1])"))
	quiet(t, tab)
}

// The file storage answers nothing for ten seconds as Go begins. Go calls it unsupported then, but it may answer later.
func TestTakeoverIsRefusedBySilentStorage(t *testing.T) {
	t.Parallel()
	tab, arrive := refusedOnce(t, "refused by silence", "refusal = 'unsupported'")
	tab.MustEval("type('typed'); autosave.addEventListener('autosave:readonly', ({detail}) => { globalThis.why = [detail.reason, detail.error.code] }); null", nil)
	arrive()
	if err := tab.Wait("late.length === 1", browser.Limit/6); err != nil {
		t.Fatalf("the page is read-only for good: %v", err)
	}
	assert.Equal(t, []string{"acquire-failed", "unsupported"}, browser.Get[[]string](tab, "why"))
	tab.MustEval("late.forEach(answer => answer()); null", nil)
	tab.WaitFor("told.includes('saved') && !autosave.readOnly", browser.Limit)
	assert.Equal(t, "typed", browser.Get[string](tab, "await current()"))
	quiet(t, tab)
}

// Go cannot begin in a page that edits early: the storage is full, or the Wasm cannot be loaded. A call that waits for it rejects with that
// reason. Nobody is asked to restart the browser.
func TestEarlyCallsSayWhyGoHasNotBegun(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	gate := make(chan struct{})
	n.fail("/missing.wasm", func(w http.ResponseWriter, r *http.Request) {
		<-gate
		http.NotFound(w, r)
	})
	root := "early reasons"
	later, arrive := n.gated(named("worker", root, "Ann"))
	full, missing := w.typesEarly(t, later), w.typesEarly(t, "{..."+named("page", root+" missing", "Ann")+", wasmURL: '/missing.wasm'}")
	full.Quota(w.URL(""), 1)
	arrive()
	close(gate)
	full.WaitFor("told.includes('readonly')", browser.Limit)
	for _, tab := range []*browser.Tab{full, missing} {
		tab.MustEval("globalThis.calls = [autosave.flushNow(), autosave.history()].map(failure); null", nil)
	}
	for tab, code := range map[*browser.Tab]string{full: "unsupported", missing: "load-failed"} {
		for _, why := range browser.Get[[]event](tab, "await Promise.all(calls)") {
			assert.Equal(t, code, why["code"], why["message"])
		}
	}
	full.Quota(w.URL(""), 0)
	quiet(t, full)
	missing.Quiet("404")
	missing.Close()
}
