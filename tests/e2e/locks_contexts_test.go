package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/internal/static"
	"github.com/holdfast-dev/holdfast/tests/browser"
)

// lockingWorker answers a message with the result of holdfast.locks. It runs in each kind of worker.
const lockingWorker = `
const opened = new Map()
const answer = async ({options, name, hold}) => {
  const key = JSON.stringify(options)
  if (!opened.has(key)) opened.set(key, openHoldfast(options))
  const hf = await opened.get(key)
  try {
    if (hold) return await new Promise((held, failed) => hf.locks.request(name, () => { held('held'); return new Promise(() => {}) }).catch(failed))
    const mode = await hf.locks.request(name, async lock => lock.mode + ' ' + (await hf.locks.query()).held.filter(lock => lock.name === name).length)
    const lease = await hf.acquireProjectLock({timeoutMs: 10000})
    await lease.release()
    return mode + ' ' + lease.strategy
  } catch (error) { return error.code + ': ' + error.message }
}
const serve = (target, post) => target.onmessage = async event => post(event, await answer(event.data))
if ('DedicatedWorkerGlobalScope' in self) serve(self, (_, said) => postMessage(said))
else if ('SharedWorkerGlobalScope' in self) onconnect = ({ports: [port]}) => serve(port, (_, said) => port.postMessage(said))
else serve(self, (event, said) => event.source.postMessage(said))
`

// askWorker defines ask, which makes a worker of one kind answer a message.
const askWorker = `
const workers = {
  dedicated: () => { const worker = new Worker('/locking-worker.js', {type: 'module'}); return {to: worker, from: worker} },
  shared: () => { const {port} = new SharedWorker('/locking-worker.js', {type: 'module'}); return {to: port, from: port} },
  service: async () => {
    const {installing: worker} = await navigator.serviceWorker.register('/service-worker.js', {type: 'module'})
    await new Promise(active => { worker.onstatechange = () => { if (worker.state === 'activated') active() } })
    navigator.serviceWorker.startMessages()
    return {to: worker, from: navigator.serviceWorker}
  },
}
const started = {}
const ask = async (kind, message) => {
  const {to, from} = await (started[kind] ??= workers[kind]())
  return new Promise((resolve, reject) => {
    to.onerror = event => reject(event.message ?? 'the worker was not loaded')
    from.onmessage = ({data}) => resolve(data)
    to.postMessage(message)
  })
}
null`

// The package runs in each kind of worker, also with the default host. If it cannot open files there, it reports the
// reason.
func TestLocksInEveryWorker(t *testing.T) {
	t.Parallel()
	mux := pages(t, siteDir)
	script := func(imports string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			static.SecurityHeaders(w.Header())
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write([]byte("import {openHoldfast} from '/holdfast.js'\n" + imports + lockingWorker))
		}
	}
	mux.HandleFunc("/locking-worker.js", script(""))
	mux.HandleFunc("/service-worker.js", script("import '/holdfast-page.js'\n"))
	w := world{browser.Start(t, whole), browser.Serve(t, mux)}
	tab := w.tab(t, "")
	tab.MustEval(askWorker, nil)
	for _, kind := range []string{"dedicated", "shared", "service"} {
		for _, strategy := range []string{"web-lock", "file-lock"} {
			eachHost(t, func(t *testing.T, host string) {
				t.Run(kind+"/"+strategy, func(t *testing.T) {
					message := "{name: 'in a worker', options: {strategy: '" + strategy + "', host: '" + host + "', root: 'worker " + kind + host + "'}}"
					said := browser.Get[string](tab, "await ask('"+kind+"', "+message+")")
					if strategy == "file-lock" && kind != "dedicated" {
						assert.Contains(t, said, "unsupported: ")
						assert.Contains(t, said, "which shared workers and service workers cannot start")
					} else {
						assert.Equal(t, "exclusive 1 "+strategy, said)
					}
				})
			})
		}
	}
}

// A service worker without the module for Go gets an error that says what to import.
func TestServiceWorkerErrorSaysWhatToImport(t *testing.T) {
	t.Parallel()
	mux := pages(t, siteDir)
	mux.HandleFunc("/service-worker.js", func(w http.ResponseWriter, _ *http.Request) {
		static.SecurityHeaders(w.Header())
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = w.Write([]byte("import {openHoldfast} from '/holdfast.js'\n" + lockingWorker))
	})
	w := world{browser.Start(t, whole), browser.Serve(t, mux)}
	tab := w.tab(t, "")
	tab.MustEval(askWorker, nil)
	said := browser.Get[string](tab, "await ask('service', {name: 'x', options: {strategy: 'web-lock'}})")
	assert.Contains(t, said, "unsupported: ")
	assert.Contains(t, said, "must import holdfast-page.js")
}

// A removed frame releases its locks and leaves every queue, and its locks refuse like the browser's.
func TestLocksOfADetachedFrame(t *testing.T) {
	t.Parallel()
	mux := pages(t, siteDir)
	mux.HandleFunc("/framed", blank(func(h http.Header) { h.Del("Content-Security-Policy") }))
	hidden := served(t, withoutWebLocks)
	hidden.HandleFunc("/framed", blank(func(h http.Header) { h.Del("Content-Security-Policy") }))
	both := world{browser.Start(t, quick), browser.Serve(t, mux)}
	alone := world{both.Browser, browser.Serve(t, hidden)}
	for name, c := range map[string]struct {
		world
		before string
	}{"file alone": {alone, withoutWebLocks}, "file, Web Locks": {both, ""}} {
		t.Run(name, func(t *testing.T) {
			eachHost(t, func(t *testing.T, host string) {
				options := filesAt(host, "detached "+host, "")
				tab := c.Open(t, c.URL("/framed"))
				tab.MustEval(c.before, nil)
				begin(tab, options)
				tab.MustEval(`
					const open = async () => {
						const frame = document.createElement('iframe')
						frame.src = '/framed'
						await new Promise(loaded => { frame.onload = loaded; document.body.append(frame) })
						frame.contentWindow.eval("`+c.before+`")
						const {openHoldfast} = await frame.contentWindow.eval("import('/holdfast.js')")
						const {locks} = await openHoldfast(`+options+`)
						return {frame, locks, DOMException: frame.contentWindow.DOMException}
					}
					const [holder, waiter] = [await open(), await open()]
					await new Promise(held => holder.locks.request('detached', () => { held(); return new Promise(() => {}) }))
					waiter.locks.request('detached', () => { globalThis.granted = true })
					for (let state; (state = await hf.locks.query()).pending.filter(lock => lock.name === 'detached').length < 1;);
					waiter.frame.remove()
					holder.frame.remove()
					await hf.locks.request('detached', () => {})
					null`, nil)
				assert.False(t, browser.Get[bool](tab, "globalThis.granted === true"))
				for _, call := range []string{"holder.locks.query()", "holder.locks.request('x', () => {})", "holder.locks.request('x', {ifAvailable: true}, () => {})"} {
					assert.Equal(t, "InvalidStateError true", browser.Get[string](tab, call+".then(() => 'nothing', error => error.name + ' ' + (error instanceof holder.DOMException))"), call)
				}
				tab.MustEval("await hf.close()", nil)
			})
		})
	}
}

// A frame was removed from its page. Its leases end with it, and every later call says what happened: a browser runs no worker and no timer
// of such a frame, so nothing would answer.
func TestLeasesOfADetachedFrame(t *testing.T) {
	t.Parallel()
	mux := pages(t, siteDir)
	mux.HandleFunc("/framed", blank(func(h http.Header) { h.Del("Content-Security-Policy") }))
	w := world{browser.Start(t, quick), browser.Serve(t, mux)}
	eachHost(t, func(t *testing.T, host string) {
		tab := w.Open(t, w.URL("/framed"))
		begin(tab, at(host, "detached leases "+host))
		tab.MustEval(`
			const frame = document.createElement('iframe')
			frame.src = '/framed'
			await new Promise(loaded => { frame.onload = loaded; document.body.append(frame) })
			const {openHoldfast} = await frame.contentWindow.eval("import('/holdfast.js')")
			const framed = await openHoldfast(`+at(host, "detached leases "+host)+`)
			const inside = await framed.acquireProjectLock()
			frame.remove()
			await hf.releaseProjectLock(await hf.acquireProjectLock())
			null`, nil)
		for _, call := range []string{"framed.acquireProjectLock({timeoutMs: 1000})", "framed.inspect()", "framed.renewProjectLock(inside)", "inside.release()"} {
			assert.Contains(t, browser.Get[string](tab, call+".then(() => 'nothing', String)"), "unsupported: InvalidStateError: the frame is gone", call)
		}
		assert.Equal(t, "InvalidStateError: the frame is gone", browser.Get[string](tab, "framed.locks.request('x', () => {}).then(() => 'nothing', String)"))
		assert.Equal(t, "closed", browser.Get[string](tab, "framed.close().then(() => 'closed', String)"))
	})
}

// A frame waits for leases of the project, of a place and of a slot, and is removed. Its requests are never answered, as the browser's own are
// not, and nothing of them is left.
func TestLeasesForWhichADetachedFrameWaited(t *testing.T) {
	t.Parallel()
	mux := pages(t, siteDir)
	mux.HandleFunc("/framed", blank(func(h http.Header) { h.Del("Content-Security-Policy") }))
	w := world{browser.Start(t, quick), browser.Serve(t, mux)}
	for _, strategy := range []string{"web-lock", "file-lock"} {
		t.Run(strategy, func(t *testing.T) {
			eachHost(t, func(t *testing.T, host string) {
				options := "{host: '" + host + "', strategy: '" + strategy + "', root: 'detached waiter " + host + "'}"
				tab := w.Open(t, w.URL("/framed"))
				begin(tab, options)
				tab.MustEval(`
					const held = await hf.acquireProjectLock()
					const frame = document.createElement('iframe')
					frame.src = '/framed'
					await new Promise(loaded => { frame.onload = loaded; document.body.append(frame) })
					const {openHoldfast} = await frame.contentWindow.eval("import('/holdfast.js')")
					const framed = await openHoldfast(`+options+`)
					const settled = [], say = name => () => { settled.push(name) }
					let release
					await new Promise(held => navigator.locks.request('raw', () => new Promise(done => { release = done; held() })))
					frame.contentWindow.navigator.locks.request('raw', () => {}).then(say('the browser'), say('the browser'))
					for (const options of [{}, {path: ['place']}, {path: ['slot'], slots: 2}]) framed.acquireProjectLock(options).then(say('Holdfast'), say('Holdfast'))
					while ((await hf.inspect()).pending.length < 3);
					frame.remove()
					await held.release()
					release()
					for (const options of [{}, {path: ['place']}, {path: ['slot'], slots: 2}]) await hf.releaseProjectLock(await hf.acquireProjectLock(options))
					while ((await hf.inspect()).pending.length);
					null`, nil)
				free(tab)
				assert.Empty(t, browser.Get[[]string](tab, "settled"))
				tab.MustEval("await hf.close()", nil)
				tab.Quiet()
			})
		})
	}
}

// A release without an answer from the file storage is reported as a failed release, not as a browser that cannot
// lock.
func TestReleaseThatIsNotAnsweredSaysSo(t *testing.T) {
	t.Parallel()
	const stuck = withoutWebLocks + `
		const create = globalThis.FileSystemFileHandle?.prototype.createSyncAccessHandle
		globalThis.opened = 0
		if (create) FileSystemFileHandle.prototype.createSyncAccessHandle = async function () {
			if (globalThis.still) return new Promise(() => {})
			if (this.name !== '.lock') return create.call(this)
			opened++
			const handle = await create.call(this).catch(e => { opened--; throw e }), {close} = handle
			handle.close = () => { opened--; close.call(handle) }
			return handle
		}
	`
	w := world{browser.Start(t, quick), browser.Serve(t, served(t, "{"+stuck+"}"))}
	eachHost(t, func(t *testing.T, host string) {
		tab := w.tab(t, "")
		tab.MustEval(withoutWebLocks+"await start("+filesAt(host, "stuck "+host, "")+")", nil)
		tab.MustEval(`
			globalThis.inside = false
			globalThis.released = failure(hf.locks.request('stuck', () => { inside = true; return new Promise(done => { globalThis.leave = done }) }))
			null`, nil)
		tab.WaitFor("inside", browser.Limit)
		// A worker that has the file open needs no answer.
		tab.EachWorkerEval("while (opened > 0) await new Promise(done => setTimeout(done, 5)); globalThis.still = true")
		failed := browser.Get[event](tab, "leave(), await released")
		assert.Equal(t, "release-failed", failed["code"])
		assert.Contains(t, failed["message"], "did not answer in time")
	})
}
