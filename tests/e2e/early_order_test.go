package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// slowLook makes the reads of a page that returns wait until `go` is called, however long that takes. `looks` counts them.
const slowLook = `{
	const real = setTimeout, wait = new Promise(done => { globalThis.go = done })
	globalThis.setTimeout = (run, ms, ...args) => real(run, ms === 1000 ? 60_000 : ms, ...args)
	globalThis.looks = 0
	indexedDB.databases = () => { looks++; return wait.then(() => []) }
}
null`

// The steps of a page that is put to sleep and goes on, one task each.
const (
	asHidden  = "dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true})); null"
	asShown   = "dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true})); null"
	asFrozen  = "document.dispatchEvent(new Event('freeze')); null"
	asResumed = "document.dispatchEvent(new Event('resume')); null"
)

// looksAgain puts an editor to sleep and lets it go on. It has its lock again, and does not get the answer to whether it may edit.
func looksAgain(tab *browser.Tab, root, sleeps, goesOn string) {
	tab.MustEval(sleeps, nil)
	tab.WaitFor("told.includes('readonly')", browser.Limit)
	tab.MustEval(slowLook, nil)
	tab.MustEval(goesOn, nil)
	tab.WaitFor("looks === 1 && (await navigator.locks.query()).held.some(({name}) => name === 'holdfast:"+root+"')", browser.Limit)
}

// holds makes a page hold the lock of a project until `leaves` is called.
func holds(tab *browser.Tab, root string) {
	tab.MustEval("globalThis.leaves = undefined; navigator.locks.request('holdfast:"+root+"', () => new Promise(done => { leaves = done })); null", nil)
	tab.WaitFor("leaves", browser.Limit)
}

// A page returns before Go runs, and is cached again after Go has begun to run, but before it was called. Another page edits meanwhile. The
// lock that the page gave back is not the one that Go takes over.
func TestEarlyReturnIsCachedBeforeTheTakeover(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "cached before the takeover " + host
		tab := w.gatedTab(t, named(host, root, "Ann"))
		stored(tab, root, " one")
		looksAgain(tab, root, asHidden, asShown)
		tab.MustEval("arrive(); await hf.ready; await hf.inspect(); await new Promise(done => setTimeout(done, 100)); null", nil)
		tab.MustEval(asHidden, nil)
		saved := w.editsAndLeaves(t, named(host, root, "Ben"))
		other := w.earlyTab(t, named(host, root, "Eve"))
		other.MustEval("edits(); null", nil)
		other.WaitFor("!autosave.readOnly && autosave.lease", browser.Limit)
		tab.MustEval(asShown, nil)
		tab.MustEval("go(); await hf.ready; await hf.inspect(); await new Promise(done => setTimeout(done, 500)); null", nil)
		assert.True(t, browser.Get[bool](tab, "autosave.readOnly"), "the other page edits")
		assert.Equal(t, []string{"editable", "readonly"}, browser.Get[[]string](tab, "told.slice(0, 3)"))
		other.MustEval("type('!'); await autosave.flushNow(); null", nil)
		quiet(t, other)
		tab.WaitFor(fmt.Sprintf("!autosave.readOnly && autosave.lease && text === '%s!'", saved), browser.Limit)
		assert.Equal(t, saved+"!", browser.Get[string](tab, "await current()"))
		quiet(t, tab)
	})
}

// A page is frozen again while it looks whether it may edit. It never edits without the lock.
func TestEarlyReturnIsFrozenWhileItLooks(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "frozen while it looks " + host
		tab, other := w.gatedTab(t, named(host, root, "Ann")), w.earlyTab(t, named(host, root, "Ben"))
		stored(tab, root, " one")
		looksAgain(tab, root, asFrozen, asResumed)
		tab.MustEval(asFrozen, nil)
		holds(other, root)
		tab.MustEval("go(); await new Promise(done => setTimeout(done, 300)); null", nil)
		assert.Equal(t, []string{"editable", "readonly"}, browser.Get[[]string](tab, "told"))
		tab.MustEval(asResumed, nil)
		other.MustEval("leaves(); null", nil)
		tab.WaitFor("!autosave.readOnly", browser.Limit)
		assert.Equal(t, []string{"editable", "readonly", "editable"}, browser.Get[[]string](tab, "told"))
		tab.MustEval("arrive(); null", nil)
		tab.WaitFor("told.includes('saved') && autosave.lease", browser.Limit)
		quiet(t, tab, other)
	})
}

// A page enters the cache twice before its next runtime runs. Words that are typed after the second return outlive a crash.
func TestWordsAfterTheSecondReturnOutliveACrash(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "second return " + host
		tab := w.gatedTab(t, named(host, root, "Ann"))
		shutsAgain(tab)
		for _, word := range []string{" two", " three"} {
			tab.MustEval(asHidden, nil)
			tab.MustEval(asShown, nil)
			tab.MustEval("type('"+word+"'); null", nil)
			if err := tab.Wait(inLocalStorage(root, word), browser.Limit/4); err != nil {
				t.Errorf("%s is lost by a crash: %v", word, err)
			}
		}
		tab.Crash()
		tab.Close()
		w.finds(t, named(host, root, "Ben"), " one two three")
	})
}

// Text that a page typed before it got its lock back became a draft for a moment. The page edits and saves it: nobody is offered that draft.
func TestEarlyReturnOffersNoDraftOfItsOwn(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "no draft of its own " + host
		tab, other := w.gatedTab(t, named(host, root, "Ann")), w.earlyTab(t, named(host, root, "Ben"))
		stored(tab, root, " one")
		tab.MustEval(asFrozen, nil)
		holds(other, root)
		tab.MustEval(asResumed, nil)
		tab.MustEval("type(' two'); await new Promise(done => setTimeout(done, 1500)); null", nil) // after half a second it is a draft
		assert.Equal(t, []string{"editable", "readonly"}, browser.Get[[]string](tab, "told"))
		other.MustEval("leaves(); null", nil)
		tab.WaitFor("!autosave.readOnly", browser.Limit)
		tab.MustEval("arrive(); null", nil)
		tab.WaitFor("told.includes('saved') && autosave.state().phase === 'idle'", browser.Limit)
		assert.Equal(t, []string{"editable", "readonly", "editable", "saved"}, browser.Get[[]string](tab, "told.filter((one, at) => one !== told[at - 1])"))
		assert.Equal(t, " one two", browser.Get[string](tab, "await current()"))
		assert.Empty(t, browser.Get[[]string](tab, "await texts()"))
		quiet(t, tab, other)
	})
}

// The download of a page that returns from the cache fails once. The page loads again by itself, and edits.
func TestDownloadFailsAfterTheReturn(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "fails after the return " + host
		tab := w.gatedTab(t, named(host, root, "Ann"))
		tab.MustEval("arrive(); null", nil)
		tab.WaitFor("told.includes('saved') && autosave.lease", browser.Limit)
		tab.MustEval(asHidden, nil)
		tab.MustEval(`{
			const real = fetch
			globalThis.fails = 1
			globalThis.fetch = async (url, ...more) => {
				if (String(url).endsWith('.wasm') && fails-- > 0) throw new TypeError('offline')
				return real(url, ...more)
			}
		} null`, nil)
		tab.MustEval(asShown, nil)
		tab.MustEval("type(' two'); null", nil)
		tab.WaitFor("autosave.state().lastError?.code === 'load-failed' || fails < 0", browser.Limit)
		if err := tab.Wait("!autosave.readOnly && autosave.lease && text === ' one two'", browser.Limit/2); err != nil {
			t.Errorf("the page does not edit: %v", err)
		}
		quiet(t, tab)
	})
}

// A page is cached while its AutoSave begins. It begins again when the page returns.
func TestEarlyAutoSaveBeginsAnewAfterItsPageWasCached(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	root := "cached while it begins"
	tab := w.earlyTab(t, named("worker", root, "Ann"))
	tab.MustEval(`{
		const {postMessage} = Worker.prototype
		globalThis.calls = 0
		Worker.prototype.postMessage = function (...args) {
			if (args[0].method !== 'autosave' || ++calls > 1) postMessage.apply(this, args)
		}
	}
	await hf.ready; edits(`+onlyPreview+`); null`, nil)
	tab.WaitFor("calls === 1", browser.Limit)
	tab.MustEval(asHidden, nil)
	tab.MustEval(asShown, nil)
	if err := tab.Wait("!autosave.readOnly && autosave.lease", browser.Limit/4); err != nil {
		t.Errorf("the page never edits: %v, ready: %v", err, browser.Get[event](tab, "await failure(autosave.ready)"))
	}
	quiet(t, tab)
}

// The page's function that learns of a lost lock throws. The page is read-only at once nevertheless, and gets its turn again.
func TestReadonlyFunctionThrows(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "onReadonly throws " + host
		tab, stealer := w.earlyTab(t, named(host, root, "Ann")), w.earlyTab(t, named(host, root, "Eve"))
		tab.MustEval(`
			globalThis.expected = true
			globalThis.after = []
			edits({lock: {onReadonly() {
				setTimeout(() => after.push(autosave.readOnly))
				throw new Error('bad onReadonly')
			}}})
			null`, nil)
		tab.WaitFor("!autosave.readOnly && autosave.lease", browser.Limit)
		tab.MustEval("type('mine'); await autosave.flushNow(); null", nil)
		stealer.MustEval("lease = await hf.acquireProjectLock({steal: true}); null", nil)
		tab.WaitFor("told.includes('readonly') && after.length > 0", browser.Limit)
		assert.Equal(t, []bool{true}, browser.Get[[]bool](tab, "after"), "it is read-only in the task after")
		stealer.MustEval("await lease.release(); null", nil)
		tab.WaitFor("!autosave.readOnly && autosave.lease", browser.Limit)
		assert.Equal(t, []string{"bad onReadonly"}, browser.Get[[]string](tab, "uncaught.map(one => one.replace('Uncaught Error: ', ''))"))
		tab.MustEval("uncaught.length = 0; null", nil)
		quiet(t, tab, stealer)
	})
}

// A page whose early lock is gone ends its AutoSave while Go begins. Go ends too, and gives its lock back.
func TestEarlyEndDuringTheTakeover(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		root := "ends in the takeover " + host
		later, arrive := n.gated(named(host, root, "Ann"))
		tab := w.earlyTab(t, later)
		tab.MustEval("edits(); null", nil)
		tab.WaitFor("told.includes('editable')", browser.Limit)
		tab.MustEval(asFrozen, nil)
		tab.WaitFor("told.includes('readonly')", browser.Limit)
		// The writer of drafts is slow, so Go has begun before the page has ended.
		tab.MustEval(`{
			const {postMessage} = Worker.prototype
			Worker.prototype.postMessage = function (...args) {
				const released = (args[0].method ?? args[0].args?.[0]) === 'release'
				setTimeout(() => postMessage.apply(this, args), released ? 1000 : 0)
			}
			autosave.addEventListener('autosave:editable', () => { globalThis.ended ??= autosave.dispose().then(() => 'ended') })
		} null`, nil)
		arrive()
		tab.WaitFor("await globalThis.ended === 'ended'", browser.Limit)
		assert.Equal(t, 0, browser.Get[int](tab, "(await hf.inspect()).held.length"))
		assert.False(t, held(tab, "holdfast:"+root))
		quiet(t, tab)
	})
}

// A page calls dispose while it asks for its lock again. It does not learn afterwards that it may edit, and its text is saved.
func TestNotEditableAfterDispose(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "editable after dispose " + host
		tab := w.gatedTab(t, named(host, root, "Ann"))
		stored(tab, root, " one")
		looksAgain(tab, root, asFrozen, asResumed)
		tab.MustEval("globalThis.ended = autosave.dispose(); go(); await new Promise(done => setTimeout(done, 300)); null", nil)
		assert.Equal(t, []string{"editable", "readonly"}, browser.Get[[]string](tab, "told"))
		tab.MustEval("arrive(); await ended; null", nil)
		assert.Equal(t, []string{"editable", "readonly", "saved"}, browser.Get[[]string](tab, "told"))
		quiet(t, tab)
		w.finds(t, named(host, root, "Ben"), " one")
	})
}

// A page is cached while Go takes over. Its sleep is the reason, not a crash.
func TestCacheDuringTheTakeoverIsNoCrash(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := w.gatedTab(t, named("worker", "cached in the takeover", "Ann"))
	tab.MustEval(`{
		const {postMessage} = Worker.prototype
		globalThis.calls = 0
		globalThis.reasons = []
		autosave.addEventListener('autosave:readonly', ({detail}) => reasons.push([detail.reason, detail.error.code]))
		Worker.prototype.postMessage = function (...args) {
			if (args[0].method !== 'autosave' || ++calls > 1) postMessage.apply(this, args)
		}
	}
	arrive(); null`, nil)
	tab.WaitFor("calls === 1", browser.Limit)
	tab.MustEval(asHidden, nil)
	tab.MustEval(asShown, nil)
	tab.WaitFor("!autosave.readOnly && autosave.lease", browser.Limit)
	assert.Equal(t, [][]string{{"lease-lost", "lease-lost"}}, browser.Get[[][]string](tab, "reasons"))
	quiet(t, tab)
}

// A page is cached while Go takes over, and a call waits for that. The call ends with the reason, although the AutoSave begins again.
func TestCallDuringACachedTakeover(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	for _, end := range []string{"cached", "dead"} {
		t.Run(end, func(t *testing.T) {
			tab := w.gatedTab(t, named("worker", "call in the takeover "+end, "Ann"))
			tab.MustEval(`{
				const {postMessage} = Worker.prototype
				globalThis.calls = 0
				Worker.prototype.postMessage = function (...args) {
					if (args[0].method !== 'autosave' || ++calls > 1) postMessage.apply(this, args)
				}
			}
			arrive(); null`, nil)
			tab.WaitFor("calls === 1", browser.Limit)
			tab.MustEval("globalThis.code = ''; autosave.flushNow().then(() => { code = 'saved' }, error => { code = error.code }); null", nil)
			want := "lease-lost"
			if end == "cached" {
				tab.MustEval(asHidden, nil)
				tab.MustEval(asShown, nil)
			} else {
				want = "runtime-crashed"
				tab.EndWorker("self.close()")
			}
			tab.WaitFor("code", browser.Limit)
			assert.Equal(t, want, browser.Get[string](tab, "code"))
			tab.WaitFor("!autosave.readOnly && autosave.lease", browser.Limit)
			quiet(t, tab)
		})
	}
}

// A page is cached while it asks for its lock again, and the runtime has just arrived. A call that waits ends with the reason.
func TestCallIsCachedBeforeTheTakeover(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := w.gatedTab(t, named("worker", "call before the takeover", "Ann"))
	tab.MustEval(asHidden, nil)
	tab.MustEval(hangs, nil)
	tab.MustEval(asShown, nil)
	tab.WaitFor("globalThis.hung", browser.Limit)
	tab.MustEval("arrive(); await hf.inspect(); null", nil)
	tab.MustEval("globalThis.code = ''; autosave.flushNow().then(() => { code = 'saved' }, error => { code = error.code }); null", nil)
	tab.MustEval(asHidden, nil)
	tab.MustEval("answer(); null", nil)
	tab.MustEval(asShown, nil)
	tab.WaitFor("code", browser.Limit)
	assert.Equal(t, "lease-lost", browser.Get[string](tab, "code"))
	tab.WaitFor("!autosave.readOnly && autosave.lease && await current() === ' one'", browser.Limit)
	quiet(t, tab)
}
