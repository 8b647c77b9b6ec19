package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// quiet ends the tabs of a test. None of them has an error that nobody handled.
func quiet(t *testing.T, tabs ...*browser.Tab) {
	t.Helper()
	for _, tab := range tabs {
		tab.MustEval("await hf.close().catch(() => {}); null", nil)
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
		tab.Close()
	}
}

// A lock of a place that was stolen before the runtime ran admits nobody: its executor runs after the stealer's.
func TestEarlyStolenPlaceAdmitsNobody(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		root := "early stolen place " + host
		later, arrive := n.gated(named(host, root, "Ann"))
		tab, stealer := w.earlyTab(t, later), w.earlyTab(t, named(host, root, "Eve"))
		stealer.MustEval("await hf.ready; null", nil)
		tab.MustEval("globalThis.ran = 0; globalThis.got = hf.withProjectLock(({token}) => { ran = token }, {path: ['a']}); null", nil)
		tab.WaitFor("(await locks()).held === 2", browser.Limit)
		stealer.MustEval("lease = await hf.acquireProjectLock({path: ['a'], steal: true}); null", nil)
		arrive()
		tab.MustEval("await hf.ready; null", nil)
		tab.WaitFor("globalThis.ran > 0 || (await locks()).pending === 1", browser.Limit)
		assert.Equal(t, 0, browser.Get[int](tab, "ran"), "the stealer still holds it")
		stealer.MustEval("await lease.release(); null", nil)
		tab.MustEval("await failure(got); null", nil)
		assert.Greater(t, browser.Get[float64](tab, "ran"), browser.Get[float64](stealer, "lease.token"))
		quiet(t, tab, stealer)
	})
}

// coarse makes the clock of a page tick every 100 ms, as that of a browser that guards against fingerprinting.
const coarse = `
	const Exact = Date, ticked = at => Math.floor(at / 100) * 100
	globalThis.Date = class extends Exact {
		constructor(...args) { super(...(args.length ? args : [ticked(Exact.now())])) }
		static now() { return ticked(Exact.now()) }
	}
	null`

// The page holds the lock that it took before the runtime ran until Go has released it: the next token is higher.
func TestEarlyGrantIsReleasedByGo(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	for _, first := range []string{"early", "late"} {
		t.Run(first, func(t *testing.T) {
			for round := range 5 {
				root := fmt.Sprintf("early tokens %s %d", first, round)
				later, arrive := n.gated(named("page", root, "Ann"))
				tab, next := w.earlyTab(t, later), w.earlyTab(t, named("page", root, "Ben"))
				for _, tab := range []*browser.Tab{tab, next} {
					tab.MustEval(coarse, nil)
				}
				next.MustEval("await hf.ready; null", nil)
				if first == "late" {
					arrive()
					tab.MustEval("await hf.ready; null", nil)
				}
				tab.MustEval("globalThis.lent = hf.acquireProjectLock({path: ['a']}); globalThis.got = lent.then(async lease => { await lease.release(); return lease.token }); null", nil)
				if first == "early" {
					tab.WaitFor("(await locks()).held === 2", browser.Limit)
				} else {
					tab.MustEval("await lent; null", nil)
				}
				next.MustEval("globalThis.got = hf.acquireProjectLock({path: ['a'], timeoutMs: 20_000, backoff: {maxRetries: 0}}).then(({token}) => token); null", nil)
				if first == "early" {
					next.WaitFor("(await locks()).pending >= 1", browser.Limit)
				}
				if first == "early" {
					arrive()
				}
				assert.Greater(t, browser.Get[float64](next, "await got"), browser.Get[float64](tab, "await got"))
				quiet(t, tab, next)
			}
		})
	}
}

// A lock that is stolen while Go gives it back keeps no later request waiting.
func TestEarlyGrantIsStolenDuringItsRelease(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	root := "early stolen release"
	later, arrive := n.gated(named("worker", root, "Ann"))
	tab := w.Open(t, w.URL("/blank"))
	begin(tab, "")
	// The page is busy when the worker asks for the release: that message arrives later.
	tab.MustEval(`
		const {request} = LockManager.prototype
		LockManager.prototype.request = function (...args) {
			const ended = request.apply(this, args)
			ended.catch(({message}) => { globalThis.stolen = /steal/.test(message) })
			return ended
		}
		globalThis.late = []
		const {set, get} = Object.getOwnPropertyDescriptor(Worker.prototype, 'onmessage')
		Object.defineProperty(Worker.prototype, 'onmessage', {get, set(run) {
			const releases = ({messages, kind}) => messages ? messages.some(releases) : kind === 'release'
			set.call(this, event => releases(event.data) && globalThis.late ? late.push(() => run.call(this, event)) : run.call(this, event))
		}})
		null`, nil)
	tab.MustEval("await start("+later+"); null", nil)
	stealer := w.earlyTab(t, named("worker", root, "Eve"))
	stealer.MustEval("await hf.ready; null", nil)
	tab.MustEval(early, nil)
	tab.MustEval("edits(); null", nil)
	tab.WaitFor("told.includes('editable')", browser.Limit)
	arrive()
	tab.WaitFor("autosave.lease", browser.Limit)
	tab.MustEval("autosave.dispose(); null", nil)
	tab.WaitFor("late.length === 1", browser.Limit)
	stealer.MustEval("await navigator.locks.request('holdfast:"+root+"', {steal: true}, () => {}); null", nil)
	tab.WaitFor("globalThis.stolen", browser.Limit)
	tab.MustEval("late.forEach(run => run()); late = undefined; null", nil)
	f := browser.Get[event](tab, "await failure(hf.acquireProjectLock({timeoutMs: 5000}))")
	assert.Nil(t, f["code"], "%v", f["message"])
	quiet(t, tab, stealer)
}

// An AutoSave that is refused leaves no lock behind.
func TestEarlyRefusedAutoSaveLeavesNoLock(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	for _, call := range []string{"hf.createAutoSave('no function')", "hf.createAutoSave(() => '', {journalMs: -1})", "hf.createAutoSave(() => '', {merge: 1})"} {
		root := "early refused " + strings.NewReplacer("'", "", "{", "", "}", "").Replace(call)
		later, arrive := n.gated("{root: '" + root + "'}")
		tab := w.earlyTab(t, later)
		assert.Equal(t, "invalid-argument", browser.Get[event](tab, "await failure("+call+".ready)")["code"])
		tab.MustEval("const {mayEdit} = await import('/holdfast-early.js'); await new Promise(done => setTimeout(done, 500)); null", nil)
		eventually(t, func() bool { return !held(tab, "holdfast:"+root) }, call)
		tab.MustEval("edits(); null", nil)
		tab.WaitFor("told.includes('editable')", browser.Limit)
		arrive()
		quiet(t, tab)
	}
}

// The runtime is there before the module that saves. The page gets one event that it may edit.
func TestEarlyRuntimeIsFirst(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		root := "early first " + host
		w.saves(t, named(host, root, "Ann"), "{}", "saved last")
		later, arrive := n.gated(named(host, root, "Ann"))
		gate := n.hold("/holdfast-autosave.js")
		tab := w.earlyTab(t, later)
		tab.MustEval(`
			globalThis.told = []
			globalThis.text = ''
			globalThis.autosave = hf.createAutoSave(() => text)
			for (const type of ['editable', 'readonly', 'draft', 'saved']) autosave.addEventListener('autosave:' + type, ({detail}) => {
				told.push(type)
				if (detail.content) text = new TextDecoder().decode(detail.content)
			})
			null`, nil)
		eventually(t, func() bool { return n.count("/holdfast-early.js") > 0 }, "the page asks for the modules")
		arrive()
		tab.MustEval("await hf.ready; await new Promise(done => setTimeout(done, 300)); null", nil)
		close(gate)
		tab.WaitFor("told.length > 0 && autosave.lease", browser.Limit)
		tab.MustEval("type(' and typed'); await autosave.flushNow(); null", nil)
		assert.Equal(t, []string{"editable", "saved"}, browser.Get[[]string](tab, "told"))
		assert.Equal(t, "saved last and typed", browser.Get[string](tab, "await current()"))
		quiet(t, tab)
	})
}

// Modules that cannot be loaded leave no rejection that nobody handles, and a missing one does not hide the preview.
func TestEarlyModulesAreMissing(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	holdfast := named("worker", "early missing", "Ann")
	w.saves(t, holdfast, "{}", "saved last")
	n.fail("/holdfast-early.js", http.NotFound)
	tab := w.earlyTab(t, n.never(holdfast))
	tab.MustEval("edits(); null", nil)
	if err := tab.Wait("told.length > 0", browser.Limit); err != nil {
		t.Errorf("no preview: %v", err)
	}
	tab.Close()
	n.fail("/holdfast-early.js", http.NotFound)
	n.fail("/holdfast-preview.js", http.NotFound)
	tab = w.earlyTab(t, holdfast)
	tab.MustEval("edits(); null", nil)
	tab.WaitFor("told.length > 0", browser.Limit)
	quiet(t, tab)
}

// Every place that the page takes is one that Go asks for at once.
func TestEarlyDeepPlace(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		for _, depth := range []int{29, 30} {
			root := fmt.Sprintf("early deep %s %d", host, depth)
			path := "['" + strings.Repeat("a','", depth-1) + "a']"
			name := "holdfast:" + root + "/" + strings.Repeat("/a", depth)
			later, arrive := n.gated(named(host, root, "Ann"))
			tab, other := w.earlyTab(t, later), w.earlyTab(t, named(host, root, "Ben"))
			tab.MustEval("edits({path: "+path+"}); null", nil)
			if tab.Wait("told.includes('editable')", 3*time.Second) == nil {
				assert.True(t, held(tab, name))
			}
			early := browser.Get[bool](tab, "told.includes('editable')")
			other.MustEval(fmt.Sprintf(grabs, name), nil)
			arrive()
			if early {
				tab.WaitFor("autosave.lease || told.includes('readonly')", browser.Limit)
				assert.Equal(t, []string{"editable"}, browser.Get[[]string](tab, "told"), "depth %d", depth)
				assert.Equal(t, 0, browser.Get[int](other, "grabbing = false, grabbed"), "depth %d: the lock was free for a moment", depth)
			}
			other.MustEval("grabbing = false; null", nil)
			quiet(t, tab, other)
		}
	})
}

// busyWhileLending keeps a page busy while it lends a lock to its worker: until the server answers, and for three seconds afterwards.
const busyWhileLending = `
	globalThis.busied = false
	const {postMessage} = Worker.prototype
	Worker.prototype.postMessage = function(...args) {
		if (!args[0].arg?.lent) return postMessage.apply(this, args)
		const asked = new XMLHttpRequest()
		asked.open('GET', '/busy', false)
		asked.send()
		postMessage.apply(this, args)
		for (const end = Date.now() + 3000; Date.now() < end;);
		busied = true
	}
	null`

// A stealer comes while the page is too busy to notice. The lease of the page never has a higher token than the stealer's
// while the stealer holds the lock.
func TestEarlyBusyPageLosesItsLockToASteal(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	for _, path := range []string{"[]", "['a']"} {
		root := "early busy " + fmt.Sprint(len(path))
		later, arrive := n.gated(named("worker", root, "Ann"))
		tab := w.Open(t, w.URL("/blank"))
		begin(tab, "")
		busy, stolen := make(chan struct{}), make(chan struct{})
		n.fail("/busy", func(_ http.ResponseWriter, r *http.Request) {
			close(busy)
			select {
			case <-stolen:
			case <-r.Context().Done():
			}
		})
		tab.MustEval(busyWhileLending, nil)
		tab.MustEval("await start("+later+"); null", nil)
		stealer := w.earlyTab(t, named("worker", root, "Eve"))
		stealer.MustEval("await hf.ready; null", nil)
		tab.MustEval("globalThis.granted = []; hf.subscribe(({type, lease, at}) => { if (type === 'lock:acquired') granted.push([lease.token, lease.acquiredAt]) }); globalThis.got = hf.acquireProjectLock({path: "+path+"}); null", nil)
		tab.WaitFor("(await locks()).held > 0", browser.Limit)
		arrive()
		select {
		case <-busy:
		case <-time.After(browser.Limit):
			require.Fail(t, "the page does not lend its lock")
		}
		stealer.MustEval("lease = await hf.acquireProjectLock({path: "+path+", steal: true}); globalThis.lost = ''; lease.signal.addEventListener('abort', () => { lost = lease.signal.reason?.code }); null", nil)
		close(stolen)
		tab.WaitFor("busied", browser.Limit)
		tab.MustEval("await hf.inspect(); null", nil) // the worker has handled the loan, and its events are here
		token := browser.Get[float64](stealer, "lease.token")
		assert.Equal(t, "", browser.Get[string](stealer, "lost"))
		for _, one := range browser.Get[[][]float64](tab, "granted") {
			assert.Less(t, one[0], token, "path %s: a lease was granted while the stealer held the lock", path)
		}
		stealer.MustEval("await lease.release(); null", nil)
		tab.MustEval("await failure(got); null", nil)
		quiet(t, tab, stealer)
	}
}

// A page whose text was all saved before its tab was closed leaves nothing behind that keeps the next one from editing early.
func TestEarlyAfterAClosedTab(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		for name, end := range map[string]func(*browser.Tab){"closed": (*browser.Tab).Close, "reloaded": (*browser.Tab).Reload, "crashed": (*browser.Tab).Crash} {
			t.Run(name, func(t *testing.T) {
				root := "early again " + host + name
				probe := w.Open(t, w.URL("/blank"))
				tab := w.earlyTab(t, named(host, root, "Ann"))
				tab.MustEval("edits(); await autosave.ready; null", nil)
				tab.WaitFor("!autosave.readOnly && autosave.lease", browser.Limit)
				tab.MustEval("type('all saved'); await new Promise(done => setTimeout(done, 1000)); await autosave.flushNow(); null", nil)
				tab.WaitFor("autosave.state().phase === 'idle'", browser.Limit)
				end(tab)
				eventually(t, func() bool { return !held(probe, "holdfast:"+root) }, "the lock of the previous page")
				next := w.earlyTab(t, n.never(named(host, root, "Ben")))
				next.MustEval("edits(); null", nil)
				if err := next.Wait("told.includes('editable: all saved')", browser.Limit); err != nil {
					left := browser.Get[[]string](next, fmt.Sprintf(`await (async () => {
						let folder = await navigator.storage.getDirectory()
						for (const name of ['%s', 'autosave', 'drafts']) folder = await folder.getDirectoryHandle(name)
						const all = Object.keys(localStorage)
						for await (const name of folder.keys()) all.push(name)
						return all
					})()`, root))
					t.Errorf("%v; left: %v; told %v", err, left, browser.Get[[]string](next, "told"))
				}
				next.Close()
				probe.Close()
			})
		}
	})
}

// A page that is frozen while its runtime loads gives up the lock. Its journalled text is a draft for the next editor, at the latest when
// the page goes on or ends: a frozen worker keeps the file of the draft open.
func TestEarlyFrozenPageLeavesItsText(t *testing.T) {
	t.Parallel()
	n, w := troubledNetworkOf(t, whole)
	eachHost(t, func(t *testing.T, host string) {
		for name, end := range map[string]func(*browser.Tab){"goes on": (*browser.Tab).Resume, "ends": (*browser.Tab).Close} {
			root := "early frozen text " + name + " " + host
			tab := w.typesEarly(t, n.never(named(host, root, "Ann")))
			tab.WaitFor(journalled(root, " and typed"), browser.Limit)
			tab.Freeze()
			next := w.earlyTab(t, named(host, root, "Ben"))
			next.MustEval("edits(); null", nil)
			next.WaitFor("!autosave.readOnly && autosave.lease", browser.Limit)
			end(tab)
			next.WaitFor("text === ' and typed' || (await texts()).join() === ' and typed'", browser.Limit)
			quiet(t, next)
		}
	})
}
