package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// The same script runs against navigator.locks and holdfast.locks: the browser's behaviour is the expected one. Each
// line of the result is "name: outcome".
const locksScript = `
const outcomes = {}
const said = error => error instanceof Error || error instanceof DOMException ? error.name : String(error)
const note = async (name, run) => {
  try { outcomes[name] = 'ok ' + String(await run()) } catch (error) { outcomes[name] = 'failed ' + said(error) }
}
const signal = () => new AbortController().signal
const compare = async locks => {
  const request = (...args) => locks.request(...args)
  await note('returns what the callback returns', () => request('n', () => 42))
  await note('awaits what the callback returns', () => request('n', async () => 'later'))
  await note('passes on what the callback throws', () => request('n', () => { throw new RangeError('x') }))
  await note('passes on an error of Holdfast', async () => {
    const lost = await hf.renewProjectLock(await hf.withProjectLock(lease => lease)).catch(error => error)
    return await request('n', () => { throw lost }).catch(error => error === lost) + lost.code
  })
  await note('passes on what is no error', () => request('n', () => Promise.reject('bare')))
  await note('gives name and mode', () => request('n', {mode: 'shared'}, lock => lock.name + ' ' + lock.mode))
  await note('converts the name', () => request(7, lock => lock.name))
  await note('takes an empty name', () => request('', lock => '[' + lock.name + ']'))
  await note('takes unicode', () => request('ünï \u{1F512}', lock => lock.name))
  await note('takes half a surrogate pair', () => request('\uD800', async lock =>
    escape(lock.name) + await request('\uFFFD', other => escape(other.name))))
  await note('no arguments', () => request())
  await note('no callback', () => request('n'))
  await note('no callback but options', () => request('n', {}))
  await note('callback is null', () => request('n', null))
  await note('options are null', () => request('n', null, () => 'fine'))
  await note('options are undefined', () => request('n', undefined, () => 'fine'))
  await note('options are a number', () => request('n', 3, () => 'fine'))
  await note('mode is unknown', () => request('n', {mode: 'sideways'}, () => 0))
  await note('mode is null', () => request('n', {mode: null}, () => 0))
  await note('signal is an object', () => request('n', {signal: {}}, () => 0))
  await note('name begins with a dash', () => request('-n', () => 0))
  await note('a dash within', () => request('n-', () => 'fine'))
  await note('steal and ifAvailable', () => request('n', {steal: true, ifAvailable: true}, () => 0))
  await note('steal and shared', () => request('n', {steal: true, mode: 'shared'}, () => 0))
  await note('signal and steal', () => request('n', {steal: true, signal: signal()}, () => 0))
  await note('signal and ifAvailable', () => request('n', {ifAvailable: true, signal: signal()}, () => 0))
  await note('a signal of a frame', () => request('w', async () => {
    const {contentWindow} = document.body.appendChild(document.createElement('iframe'))
    const controller = new contentWindow.AbortController()
    const waiting = request('w', {signal: controller.signal}, () => 'never')
    controller.abort('enough')
    return waiting
  }))
  await note('signal is null', () => request('n', {signal: null}, () => 0))
  await note('signal has the prototype alone', () => request('n', {signal: Object.create(AbortSignal.prototype)}, () => 0))
  await note('aborted before', () => request('n', {signal: AbortSignal.abort()}, () => 0))
  await note('aborted before with a reason', () => request('n', {signal: AbortSignal.abort('because')}, () => 0))
  await note('ifAvailable gets null', () => request('held', () => request('held', {ifAvailable: true}, lock => lock)))
  await note('ifAvailable gets it', () => request('free', {ifAvailable: true}, lock => lock.name))
  await note('shared beside shared', () => request('s', {mode: 'shared'}, () => request('s', {mode: 'shared'}, () => 'both')))
  await note('aborted while waiting', () => request('w', async () => {
    const controller = new AbortController()
    const waiting = request('w', {signal: controller.signal}, () => 'never')
    controller.abort('enough')
    return waiting
  }))
  for (const code of ['lease-lost', 'aborted', 'runtime-crashed']) await note('aborted with a reason whose code is ' + code, () => request('w', async () => {
    const controller = new AbortController(), reason = Object.assign(new RangeError('x'), {code})
    const waiting = request('w', {signal: controller.signal}, () => 'never')
    controller.abort(reason)
    return waiting.catch(failure => failure === reason)
  }))
  await note('an abort after the grant changes nothing', () => {
    const controller = new AbortController()
    return request('a', {signal: controller.signal}, async () => { controller.abort(); return 'kept' })
  })
  await note('stolen', async () => {
    let stolen
    const granted = new Promise(done => { stolen = request('t', () => { done(); return new Promise(() => {}) }) })
    await granted
    const stealer = await request('t', {steal: true}, lock => lock.mode)
    return stealer + ' ' + await stolen.catch(said)
  })
  await note('stolen, and the callback fails at once', async () => {
    let fail, stolen
    const granted = new Promise(done => { stolen = request('t', () => new Promise((_, no) => { fail = no; done() })) })
    await granted
    await request('t', {steal: true}, () => fail(new RangeError('x')))
    return await stolen.catch(said)
  })
  await note('first come first served', async () => {
    const order = []
    await request('q', async () => {
      const queue = [1, 2, 3].map(i => request('q', () => { order.push(i) }))
      for (let state; (state = await locks.query()).pending.filter(l => l.name === 'q').length < 3;);
      queueMicrotask(() => {})
      order.queue = queue
    })
    await Promise.all(order.queue)
    return order.join()
  })
  await note('order of one turn', async () => {
    const order = []
    let rest
    const log = (name, mode, label) => request(name, {mode}, () => { order.push(label) })
    await request('x', () => { rest = Promise.all([log('x', 'shared', 1), log('y', 'exclusive', 2), log('x', 'shared', 3), log('z', 'exclusive', 4)]) })
    await rest
    return order.join()
  })
  await note('order of a hundred requests of one turn', async () => {
    const order = []
    await Promise.all(Array.from({length: 100}, (_, i) => request('n' + i, () => { order.push(i) })))
    return order.join()
  })
  await note('ifAvailable behind a waiting request of its turn', () => request('h', {mode: 'shared'}, async () => {
    const controller = new AbortController()
    const waiting = request('h', {signal: controller.signal}, () => 'never').catch(said)
    const denied = await request('h', {mode: 'shared', ifAvailable: true}, lock => lock)
    controller.abort()
    return denied + ' ' + await waiting
  }))
  await note('query tells', () => request('held', {mode: 'shared'}, async () => {
    const {held} = await locks.query()
    const [lock] = held.filter(l => l.name === 'held')
    return Object.keys(lock).sort().join() + ' ' + lock.mode + ' ' + typeof lock.clientId
  }))
  await note('is free afterwards', async () => (await locks.query()).held.length)
  return outcomes
}
`

func TestLocksBehaveAsTheBrowsersDo(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	for name, options := range map[string]string{
		"worker":    "{host: 'worker'}",
		"page":      "{host: 'page'}",
		"file lock": "{strategy: 'file-lock'}",
	} {
		t.Run(name, func(t *testing.T) {
			tab := w.tab(t, options)
			tab.MustEval(locksScript, nil)
			raw := browser.Get[map[string]string](tab, `await compare(navigator.locks)`)
			ours := browser.Get[map[string]string](tab, `await compare(hf.locks)`)
			assert.NotEmpty(t, raw)
			assert.Equal(t, raw, ours)
			tab.MustEval(`await hf.close()`, nil)
			tab.Quiet()
		})
	}
}

// withoutWebLocks makes a page or a worker behave like one in a browser without Web Locks.
const withoutWebLocks = "Object.defineProperty(navigator, 'locks', {value: undefined});"

// Without Web Locks, the file alone behaves like the browser too.
func TestLocksOverTheFileAloneBehaveAsTheBrowsersDo(t *testing.T) {
	t.Parallel()
	w := world{browser.Start(t, quick), browser.Serve(t, served(t, withoutWebLocks))}
	eachHost(t, func(t *testing.T, host string) {
		tab := w.tab(t, "")
		tab.MustEval("const raw = navigator.locks; "+withoutWebLocks+locksScript+"await start("+filesAt(host, "locks alone "+host, "")+")", nil)
		theirs := browser.Get[map[string]string](tab, `await compare(raw)`)
		ours := browser.Get[map[string]string](tab, `await compare(hf.locks)`)
		assert.NotEmpty(t, theirs)
		assert.Equal(t, theirs, ours)
		tab.MustEval(`await hf.close()`, nil)
		tab.Quiet()
	})
}

// Frames of one page make requests in turn, faster than their workers reach the file: they queue in the order of
// their requests.
func TestFramesOverAFileAreServedInTheOrderOfAsking(t *testing.T) {
	t.Parallel()
	mux := pages(t, siteDir)
	mux.HandleFunc("/framed", blank(func(h http.Header) { h.Del("Content-Security-Policy") }))
	w := world{browser.Start(t, quick), browser.Serve(t, mux)}
	eachHost(t, func(t *testing.T, host string) {
		options := filesAt(host, "frames-"+host, "")
		tab := w.Open(t, w.URL("/framed"))
		begin(tab, options)
		tab.MustEval(`const frames = []
			for (let i = 0; i < 3; i++) {
				const frame = document.createElement('iframe')
				frame.src = '/framed'
				await new Promise(loaded => { frame.onload = loaded; document.body.append(frame) })
				const {openHoldfast} = await frame.contentWindow.eval("import('/holdfast.js')")
				const {locks} = await openHoldfast(`+options+`)
				// Held from here on, because the id of an idle frame may change.
				const client = await new Promise(told => { locks.request(`+"'"+host+" frame '"+` + i, async () => {
					told((await locks.query()).held.find(({name}) => name === `+"'"+host+" frame '"+` + i).clientId)
					await new Promise(() => {})
				}) })
				frames.push({locks, client})
			}
			const round = async order => {
				let asked, pending
				await hf.locks.request('turns', async () => {
					asked = order.map(i => frames[i].locks.request('turns', () => {}))
					do ({pending} = await hf.locks.query())
					while (pending.length < order.length)
				})
				await Promise.all(asked)
				return pending.map(({clientId}) => frames.findIndex(({client}) => client === clientId))
			}
			null`, nil)
		for _, order := range [][]int{{0, 1, 2}, {2, 0, 1}, {1, 2, 0}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}} {
			assert.Equal(t, order, browser.Get[[]int](tab, fmt.Sprintf("await round(%s)", strings.ReplaceAll(fmt.Sprint(order), " ", ", "))))
		}
	})
}

// A request that is aborted before its grant never runs its callback, however close the grant was, with a loading
// runtime and with a ready one.
func TestAbortBeforeGrantRunsNoCallback(t *testing.T) {
	t.Parallel()
	with := open(t, quick)
	without := world{with.Browser, browser.Serve(t, served(t, withoutWebLocks))}
	for name, c := range map[string]struct {
		world
		before string
	}{"file alone": {without, withoutWebLocks}, "file, Web Locks": {with, ""}} {
		t.Run(name, func(t *testing.T) {
			eachHost(t, func(t *testing.T, host string) {
				tab := c.tab(t, "")
				tab.MustEval(c.before+abortScript, nil)
				options := "{strategy: 'file-lock', host: '" + host + "', root: 'abort " + host + " ' + root}"
				run := fmt.Sprintf("await abortRounds(root => openHoldfast(%s), %d, %d)", options, rounds(t, 3, 200), rounds(t, 60, 200))
				tab.MustEval("globalThis.wrong = undefined; ("+"async () => { globalThis.wrong = "+run+" })().catch(error => { globalThis.wrong = [String(error)] }); null", nil)
				tab.WaitFor("globalThis.wrong", 20*browser.Limit)
				assert.Empty(t, browser.Get[[]string](tab, "wrong"))
				tab.Quiet()
			})
		})
	}
}

// A request over a file that is aborted while the runtime is loading ends at once, as in the browser.
func TestAbortWhileLoadingSettlesAtOnce(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		tab := w.Open(t, w.URL("/blank"))
		begin(tab, "")
		tab.MustEval(withoutWebLocks+"await start("+n.never(filesAt(host, "abort while loading "+host, "Ann"))+"); null", nil)
		tab.MustEval(`
			const controller = new AbortController()
			globalThis.ran = false
			hf.locks.request('x', {signal: controller.signal}, () => { ran = true }).catch(reason => { globalThis.said = reason })
			setTimeout(() => controller.abort('enough'))
			null`, nil)
		tab.WaitFor("globalThis.said", browser.Limit)
		assert.Equal(t, "enough", browser.Get[string](tab, "String(said)"))
		assert.False(t, browser.Get[bool](tab, "ran"))
		tab.Close()
	})
}

// abortScript defines abortRounds, which aborts at one of three moments and returns the errors.
const abortScript = `
const abortOnce = async (locks, i) => {
	const controller = new AbortController()
	let ran = false
	const answer = locks.request('aborted', {signal: controller.signal}, () => { ran = true }).then(() => 'granted', reason => reason)
	if (i % 3 === 1) await undefined
	if (i % 3 === 2) { // the grant arrives meanwhile, and waits for this task to end
		await new Promise(done => setTimeout(done))
		for (const until = performance.now() + 20; performance.now() < until;);
	}
	const granted = ran
	controller.abort('enough')
	const said = await answer
	return !granted && (ran || said !== 'enough') ? [i + ': ' + ran + ', ' + said] : []
}
const abortRounds = async (open, cold, warm) => {
	const wrong = []
	for (let i = 0; i < cold; i++) {
		const hf = await open(i)
		wrong.push(...await abortOnce(hf.locks, i))
		await hf.close()
	}
	const hf = await open('warm')
	for (let i = 0; i < warm; i++) wrong.push(...await abortOnce(hf.locks, i))
	await hf.close()
	return wrong
}
`
