package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// orderScript defines the ways in which the operations of one page can overtake each other. Each function tries one
// of them with a name that nobody else uses, and returns nothing if the order was kept.
const orderScript = `
const nextTask = () => new Promise(done => setTimeout(done))
const holding = (locks, name, options = {}) => new Promise((held, refused) => {
  const ended = locks.request(name, options, () => new Promise(release => queueMicrotask(() => held({release, ended}))))
  ended.catch(refused)
})
const count = async (locks, name) => {
  const {held, pending} = await locks.query()
  const of = list => list.filter(lock => lock.name.startsWith(name)).length
  return 'held ' + of(held) + ', pending ' + of(pending)
}
const available = (locks, name) => locks.request(name, {ifAvailable: true}, lock => lock ? 'granted' : 'not available')
const expect = (expected, found) => String(found) === String(expected) ? undefined : expected + ', but found ' + found
const orders = {
  async 'two releases, a task, a query'(locks, name) {
    const [a, b] = [await holding(locks, name + 'a'), await holding(locks, name + 'b')]
    a.release(); b.release()
    await nextTask()
    return expect('held 0, pending 0', await count(locks, name))
  },
  async 'two releases, a task, ifAvailable'(locks, name) {
    const [a, b] = [await holding(locks, name + 'a'), await holding(locks, name + 'b')]
    a.release(); b.release()
    await nextTask()
    return expect('granted,granted', await Promise.all([available(locks, name + 'a'), available(locks, name + 'b')]))
  },
  async 'a release, a task, a release, a task, ifAvailable'(locks, name) {
    const [a, b] = [await holding(locks, name), await holding(locks, name + 'b')]
    a.release()
    await nextTask()
    b.release()
    await nextTask()
    return expect('granted', await available(locks, name))
  },
  async 'a query, a release'(locks, name) {
    const a = await holding(locks, name)
    const state = count(locks, name)
    a.release()
    return expect('held 1, pending 0', await state)
  },
  async 'requests, a query, a release'(locks, name) {
    let release
    const first = locks.request(name, () => new Promise(done => { release = done }))
    const second = locks.request(name, () => {})
    const state = await count(locks, name)
    while (!release) await nextTask()
    release()
    await first
    await second
    return expect('held 1, pending 1', state)
  },
  async 'a request, ifAvailable'(locks, name) {
    const first = holding(locks, name)
    const second = await available(locks, name)
    ;(await first).release()
    return expect('not available', second)
  },
  async 'ifAvailable, a request'(locks, name) {
    const first = available(locks, name)
    const second = holding(locks, name)
    const found = await first
    ;(await second).release()
    return expect('granted', found)
  },
  async 'an abort, a query'(locks, name) {
    const a = await holding(locks, name), controller = new AbortController()
    const waiting = locks.request(name, {signal: controller.signal}, () => 'ran').catch(reason => reason)
    controller.abort('enough')
    const state = await count(locks, name)
    a.release()
    await a.ended
    return expect('held 1, pending 0, enough', state + ', ' + await waiting)
  },
  async 'an abort among waiters, a release'(locks, name) {
    const a = await holding(locks, name), controller = new AbortController(), ran = []
    const second = locks.request(name, {signal: controller.signal}, () => { ran.push('second') }).catch(() => {})
    const third = locks.request(name, () => { ran.push('third') })
    controller.abort()
    a.release()
    await Promise.all([a.ended, second, third])
    return expect('third', ran)
  },
  async 'a release, a request'(locks, name) {
    const a = await holding(locks, name)
    a.release()
    const again = locks.request(name, {mode: 'shared'}, async () => count(locks, name))
    return expect('held 1, pending 0', await again)
  },
}
const keepsOrder = async (locks, which, rounds, prefix) => {
  const wrong = []
  for (let i = 0; i < rounds; i++) {
    const found = await orders[which](locks, prefix + ' ' + which + i + ' ')
    if (found) wrong.push(i + ': ' + found)
  }
  return wrong
}
`

// A page sees its own requests, releases, queries and aborts in the order in which it made them, as with Web Locks.
func TestLocksKeepTheOrderOfAPage(t *testing.T) {
	t.Parallel()
	w := world{browser.Start(t, quick), browser.Serve(t, pages(t, siteDir))}
	alone := world{w.Browser, browser.Serve(t, served(t, withoutWebLocks))}
	for name, c := range map[string]struct {
		world
		before, options string
	}{
		"file alone":      {alone, withoutWebLocks, "strategy: 'file-lock'"},
		"file, Web Locks": {w, "", "strategy: 'file-lock'"},
		"Web Locks":       {w, "", "strategy: 'web-lock'"},
	} {
		t.Run(name, func(t *testing.T) {
			eachHost(t, func(t *testing.T, host string) {
				tab := c.tab(t, "")
				tab.MustEval("const raw = navigator.locks; "+c.before+orderScript, nil)
				options := func(root string) string {
					return "{host: '" + host + "', root: 'order " + host + " ' + " + root + ", " + c.options + "}"
				}
				for _, which := range browser.Get[[]string](tab, "Object.keys(orders)") {
					t.Run(which, func(t *testing.T) {
						js := "'" + which + "'"
						assert.Empty(t, browser.Get[[]string](tab, "await keepsOrder(raw, "+js+", 3, 'control')"), "the control")
						assert.Empty(t, browser.Get[[]string](tab, `await (async () => {
							const wrong = []
							for (let i = 0; i < `+fmt.Sprint(rounds(t, 1, 200))+`; i++) {
								const cold = await openHoldfast(`+options(js+" + i")+`)
								wrong.push(...await keepsOrder(cold.locks, `+js+`, 1, 'cold ' + i))
								await cold.close()
							}
							return wrong
						})()`), "cold")
						assert.Empty(t, browser.Get[[]string](tab, `await (async () => {
							const [warm, other] = [await openHoldfast(`+options("0")+`), await openHoldfast(`+options("0")+`)]
							const beside = await holding(other.locks, 'beside')
							const wrong = await keepsOrder(warm.locks, `+js+`, `+fmt.Sprint(rounds(t, 5, 200))+`, 'warm')
							beside.release()
							await beside.ended
							await warm.close()
							await other.close()
							return wrong
						})()`), "warm, beside another client")
					})
				}
				tab.Quiet()
			})
		})
	}
}

// The time in which a runtime loads does not count as time in which a lock was held.
func TestIfAvailableWhileTheRuntimeLoads(t *testing.T) {
	t.Parallel()
	site, load := pages(t, siteDir), make(chan struct{})
	slow := http.NewServeMux()
	slow.Handle("/", site)
	slow.HandleFunc("/holdfast.wasm", func(w http.ResponseWriter, r *http.Request) {
		<-load
		site.ServeHTTP(w, r)
	})
	tab := world{browser.Start(t, quick), browser.Serve(t, slow)}.tab(t, "")
	tab.MustEval(orderScript+`
		const cold = (await import('/holdfast.js')).createHoldfast({strategy: 'file-lock', root: 'cold'})
		result = available(cold.locks, 'free'); 1`, nil)
	assert.Equal(t, "waits", browser.Get[string](tab, "await Promise.race([result, new Promise(done => setTimeout(done, 4000, 'waits'))])"))
	close(load)
	assert.Equal(t, "granted", browser.Get[string](tab, "await result"))
	tab.Quiet()
}

// A request whose promise rejects, because the page is put to sleep before the browser answers, runs no callback later.
func TestRequestOfAPageThatSleepsRunsNoCallback(t *testing.T) {
	t.Parallel()
	tab := open(t, quick).tab(t, "{}")
	assert.Equal(t, []any{"AbortError", false, "AbortError", false}, browser.Get[[]any](tab, `await (async () => {
		const said = []
		for (const options of [{ifAvailable: true}, {steal: true}]) {
			await hf.inspect()
			await null
			await null // now the Holdfast knows that its call has ended: a page that is quiet for 200 ms would keep its runtime
			let ran = false
			const answer = hf.locks.request('sleeps', options, () => { ran = true }).catch(({name}) => name)
			dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))
			said.push(await answer)
			await navigator.locks.query()
			await new Promise(done => setTimeout(done, 100))
			said.push(ran)
			dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))
		}
		return said
	})()`))
}

// A page with slow storage makes many requests at once, and a query. The query answers after them, however long they take: the storage
// answers all the time.
func TestQueryBehindManyRequests(t *testing.T) {
	t.Parallel()
	slow := withoutWebLocks + `
		const write = globalThis.FileSystemSyncAccessHandle?.prototype.write
		if (write) FileSystemSyncAccessHandle.prototype.write = function (data, ...rest) {
			if (String.fromCharCode(...data.subarray(0, 13)) === 'holdfast-lock') for (const end = performance.now() + 400; performance.now() < end;);
			return write.call(this, data, ...rest)
		}
	`
	w := world{browser.Start(t, quick), browser.Serve(t, served(t, "{"+slow+"}"))}
	tab := w.tab(t, "")
	tab.MustEval(withoutWebLocks+"await start("+filesAt("worker", "slow", "")+"); await hf.ready", nil)
	assert.Equal(t, 30.0, browser.Get[float64](tab, `await (() => {
		for (let n = 0; n < 30; n++) hf.locks.request('many' + n, () => new Promise(() => {}))
		return hf.locks.query().then(({held}) => held.length, String)
	})()`))
	tab.Quiet()
}

// A page is granted a lock over the file, and closes its Holdfast before the news arrive. The lock is given back, so its callback does not
// run.
func TestGrantThatArrivesAfterCloseRunsNoCallback(t *testing.T) {
	t.Parallel()
	w := world{browser.Start(t, quick), browser.Serve(t, served(t, withoutWebLocks))}
	tab := w.tab(t, "")
	tab.MustEval(withoutWebLocks+`{
		const {get, set} = Object.getOwnPropertyDescriptor(Worker.prototype, 'onmessage')
		Object.defineProperty(Worker.prototype, 'onmessage', {get, set(listener) {
			set.call(this, event => {
				if (event.data.kind !== 'callback') return listener(event)
				globalThis.leaves = hf.close().then(() => 'closed')
				setTimeout(listener, 0, event)
			})
		}})
	} await start(`+filesAt("worker", "late grant", "")+`); await openHoldfast(`+filesAt("worker", "late grant", "")+`); null`, nil)
	assert.Equal(t, []any{"aborted", false, "closed"}, browser.Get[[]any](tab, `await (async () => {
		let ran = false
		const {code} = await failure(hf.locks.request('x', () => { ran = true }))
		return [code, ran, await leaves]
	})()`))
	tab.Quiet()
}

// A page closes one of its Holdfasts during a callback that never ends. Nothing of that Holdfast stays in the worker, which serves another one.
func TestCloseDuringACallbackLeavesNothing(t *testing.T) {
	t.Parallel()
	const counted = withoutWebLocks + `
		globalThis.names = []
		globalThis.BroadcastChannel = class extends BroadcastChannel {
			constructor(name) { super(name); names.push(name) }
			close() { names.splice(names.indexOf(this.name), 1); super.close() }
		}
	`
	w := world{browser.Start(t, quick), browser.Serve(t, served(t, "{"+counted+"}"))}
	tab := w.tab(t, "")
	options := filesAt("worker", "callback", "")
	tab.MustEval(withoutWebLocks+"await start("+options+"); const other = await openHoldfast("+options+"); await other.inspect()", nil)
	tab.MustEval("result = failure(hf.locks.request('x', () => new Promise(() => { globalThis.inside = true }))); null", nil)
	tab.WaitFor("globalThis.inside", browser.Limit)
	tab.MustEval("await hf.close()", nil)
	assert.Equal(t, "aborted", browser.Get[string](tab, "(await result).code"))
	tab.EachWorkerEval("while (names.filter(name => name === 'holdfast:callback').length > 1) await new Promise(done => setTimeout(done, 5))")
	tab.MustEval("await other.locks.request('x', () => {}); await other.close()", nil)
	tab.Quiet()
}
