package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// opened announces to all listeners how often a worker has opened the `.lock` file.
const opened = `
if (globalThis.FileSystemFileHandle?.prototype.createSyncAccessHandle) {
	const open = FileSystemFileHandle.prototype.createSyncAccessHandle, told = new BroadcastChannel('opened')
	FileSystemFileHandle.prototype.createSyncAccessHandle = function () {
		if (this.name === '.lock') told.postMessage(1)
		return open.call(this)
	}
}`

// gated gives workers openNothing, which waits until no handle is on its way to the worker, and lets the worker ask for none until
// openAgain. A client also looks at the table by itself; see TestFrozenWhileAHandleIsOnItsWay.
const gated = `
if (globalThis.FileSystemFileHandle?.prototype.createSyncAccessHandle) {
	const open = FileSystemFileHandle.prototype.createSyncAccessHandle
	let underWay = 0, allowed = Promise.resolve()
	globalThis.openNothing = async () => {
		allowed = new Promise(done => globalThis.openAgain = done)
		while (underWay > 0) await new Promise(done => setTimeout(done))
	}
	FileSystemFileHandle.prototype.createSyncAccessHandle = async function (...args) {
		await allowed
		underWay++
		try { return await open.apply(this, args) } finally { underWay-- }
	}
}`

// A page that takes one lock after the other keeps the file of locks open meanwhile. A hidden page does not, because
// it may be frozen.
func TestAPageKeepsTheFileOfLocks(t *testing.T) {
	t.Parallel()
	w := world{browser.Start(t, whole), browser.Serve(t, served(t, withoutWebLocks+opened))}
	eachHost(t, func(t *testing.T, host string) {
		tab := w.tab(t, "")
		tab.MustEval("const raw = navigator.locks;"+withoutWebLocks+`
			globalThis.opened = 0
			new BroadcastChannel('opened').onmessage = () => opened++
			await start(`+filesAt(host, "kept-"+host, "")+`)
			const cycles = async (n, locks = hf.locks) => { const begun = now(); for (let i = 0; i < n; i++) await locks.request('x', () => {}); return (now() - begun) / n }
			await cycles(10)
			null`, nil)
		t.Logf("a cycle of the browser's own locks takes %.2f ms", browser.Get[float64](tab, "await cycles(100, raw)"))
		const n = 100
		for _, visible := range []bool{true, false} {
			if visible {
				tab.Show()
			} else {
				tab.Hide()
			}
			before := browser.Get[int](tab, "opened")
			took := browser.Get[float64](tab, fmt.Sprintf("await cycles(%d)", n))
			if !visible {
				tab.WaitFor(fmt.Sprintf("opened >= %d", before+n), browser.Limit) // the messages come later than the answers
			}
			opened := browser.Get[int](tab, "opened") - before
			t.Logf("visible %v: a cycle takes %.2f ms; %d cycles opened the file %d times", visible, took, n, opened)
			if visible { // once in half a second, and after each tenth of a second in which the machine did something else
				assert.Less(t, opened, n)
			}
		}
		tab.MustEval("await hf.close()", nil)
		tab.Quiet()
	})
}

// A page that enters the back/forward cache right after a step has closed the file of locks, so others can take their
// locks.
func TestACachedPageDoesNotKeepTheFileOfLocks(t *testing.T) {
	t.Parallel()
	w := world{browser.Start(t, whole), browser.Serve(t, served(t, withoutWebLocks+gated))}
	eachHost(t, func(t *testing.T, host string) {
		options := filesAt(host, "asleep-"+host, "")
		other := w.tab(t, "")
		other.MustEval(withoutWebLocks+"await start("+options+"); null", nil)
		for range 4 {
			keeping := w.Open(t, w.URL("/blank"))
			begin(keeping, "")
			keeping.MustEval(withoutWebLocks+"await start("+options+"); for (let i = 0; i < 20; i++) await hf.locks.request('x', () => {}); null", nil)
			keeping.EachWorkerEval("await openNothing()")
			keeping.Navigate(w.URL("/blank?elsewhere"))
			took := browser.Get[float64](other, `await (async () => {
				const begun = now()
				await hf.locks.request('y', {signal: AbortSignal.timeout(10_000)}, () => {})
				return now() - begun
			})()`)
			t.Logf("another page waits %.1f ms", took)
			keeping.Close()
		}
	})
}

// busy acquires and releases a lock until stop is set, and notes the times.
const busy = `
	globalThis.holds ??= []
	globalThis.stop = false
	globalThis.ended = (async () => {
		while (!stop) await hf.locks.request('x', async () => {
			const hold = {from: now()}
			holds.push(hold)
			await new Promise(done => setTimeout(done, 5))
			hold.to = now()
		})
	})()
	null`

// A page that is frozen after its steps does not keep the others out. One whose process is suspended in the middle of
// them keeps the others out for as long as it sleeps. When they wake, neither overwrites what others did nor fails.
func TestAFrozenPageDoesNotKeepTheFileOfLocks(t *testing.T) {
	t.Parallel()
	eachHostAtOnce(t, func(t *testing.T, host string) {
		w := world{browser.Start(t, whole), browser.Serve(t, served(t, withoutWebLocks+gated))} // only one tab of a browser is visible
		options := filesAt(host, "frozen-"+host, "")
		var tabs [2]*browser.Tab
		for i := range tabs {
			tabs[i] = w.tab(t, "")
			tabs[i].MustEval(withoutWebLocks+"await start("+options+"); null", nil)
		}
		keeping, other := tabs[0], tabs[1]
		for round := range 4 {
			keeping.MustEval(busy, nil)
			keeping.WaitFor(fmt.Sprintf("holds.length > %d", 5+7*round), browser.Limit)
			if round%2 == 0 {
				freezesBetweenSteps(t, keeping, other)
			} else {
				keeping.Suspend()
				other.MustEval("globalThis.got = hf.locks.request('y', () => true); null", nil)
				keeping.Continue()
				assert.True(t, browser.Get[bool](other, "await got"))
			}
			before := browser.Get[int](keeping, "holds.length")
			keeping.WaitFor(fmt.Sprintf("holds.length > %d", before+5), browser.Limit)
			before = browser.Get[int](other, "globalThis.holds?.length ?? 0")
			other.MustEval(busy, nil)
			other.WaitFor(fmt.Sprintf("holds.length > %d", before+3), browser.Limit)
			other.MustEval("stop = true; await ended; null", nil)
			keeping.MustEval("stop = true; await ended; null", nil)
		}
		assertOneAtATime(t, tabs[:])
	})
}

// freezesBetweenSteps freezes the page that keeps the file after its steps while the other page acquires a lock. Then that page goes on.
func freezesBetweenSteps(t *testing.T, keeping, other *browser.Tab) {
	t.Helper()
	keeping.MustEval("stop = true; await ended; null", nil)
	keeping.Hide()
	keeping.EachWorkerEval("await openNothing()")
	keeping.Freeze()
	took := browser.Get[float64](other, `await (async () => {
		const begun = now()
		await hf.locks.request('y', {signal: AbortSignal.timeout(10_000)}, () => {})
		return now() - begun
	})()`)
	t.Logf("beside a frozen page, another one waits %.1f ms", took)
	keeping.Resume()
	keeping.EachWorkerEval("openAgain()")
	keeping.Show()
	keeping.MustEval(busy, nil)
}

// assertOneAtATime checks that no two pages held the lock at the same time, and closes them.
func assertOneAtATime(t *testing.T, tabs []*browser.Tab) {
	t.Helper()
	type hold struct{ From, To float64 }
	var holds []hold
	for _, tab := range tabs {
		holds = append(holds, browser.Get[[]hold](tab, "holds")...)
		tab.MustEval("await hf.close()", nil)
		tab.Quiet()
	}
	slices.SortFunc(holds, func(a, b hold) int { return cmp.Compare(a.From, b.From) })
	for i := 1; i < len(holds); i++ {
		// The clocks of two pages differ by less than a millisecond; a lock is held for five.
		assert.Greater(t, holds[i].From, holds[i-1].To-1, "two pages held the lock at the same time")
	}
}
