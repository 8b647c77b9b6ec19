//go:build js && wasm

package jsbridge_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/jsbridge"
	"github.com/holdfast-dev/holdfast/lock"
)

// A name is stolen before the browser has answered for the next one: the request is denied, and the caller may try
// again.
func TestNameStolenBeforeAllAreGrantedIsDenied(t *testing.T) {
	noLeaks(t)
	restore := js(t, `(() => {
		const { request } = LockManager.prototype
		LockManager.prototype.request = async function (name, ...rest) {
			if (name === "second") await request.call(this, "first", { steal: true }, () => {})
			return request.call(this, name, ...rest)
		}
		return () => { LockManager.prototype.request = request }
	})()`)
	defer func() { _, _ = restore.Invoke() }()
	_, err := jsbridge.NewWebLocks().Request(t.Context(), lock.Request{IfAvailable: true,
		Wants: []lock.Want{{Name: "first", Mode: lock.Shared}, {Name: "second", Mode: lock.Exclusive}}})
	require.ErrorIs(t, err, lock.ErrDenied)
	assert.NotErrorIs(t, err, lock.ErrUnsupported)
	_, err = restore.Invoke()
	require.NoError(t, err)
	g, err := jsbridge.NewWebLocks().Request(t.Context(), lock.Request{IfAvailable: true, Wants: []lock.Want{{Name: "second", Mode: lock.Exclusive}}})
	require.NoError(t, err, "nothing was left behind")
	require.NoError(t, g.Release(t.Context()))
}

// A signal that lives as long as the page keeps no listener of a call that has ended.
func TestWithSignalLeavesNoListener(t *testing.T) {
	noLeaks(t)
	signal := js(t, `(() => {
		const { signal } = new AbortController()
		signal.listeners = 0
		const { addEventListener, removeEventListener } = signal
		signal.addEventListener = (...args) => { signal.listeners++; addEventListener.apply(signal, args) }
		signal.removeEventListener = (...args) => { signal.listeners--; removeEventListener.apply(signal, args) }
		return signal
	})()`)
	_, stop, err := jsbridge.WithSignal(t.Context(), signal)
	require.NoError(t, err)
	stop()
	left, err := must(t)(signal.Get("listeners")).Int()
	require.NoError(t, err)
	assert.Zero(t, left)
}

// A page freezes before the browser has got back an earlier lock of the page, and after the last look of a takeover. Meanwhile
// another page steals the lock. The steal of the first one must not come after that.
func TestStealDoesNotWaitForAnEarlierRelease(t *testing.T) {
	noLeaks(t)
	page := js(t, `(() => {
		const { request } = LockManager.prototype
		let wake
		const frozen = new Promise(resolve => { wake = resolve })
		LockManager.prototype.request = function (name, ...rest) {
			const over = request.call(this, name, ...rest)
			return name === "earlier" ? over.finally(() => frozen) : over
		}
		const page = {
			lost: false, wake,
			restore: () => { LockManager.prototype.request = request },
			steal: () => new Promise(granted => request.call(navigator.locks, "stolen", { steal: true },
				() => new Promise(free => { page.free = free; granted() })).catch(() => { page.lost = true })),
			settled: async () => { for (let i = 0; i < 5; i++) await navigator.locks.query() },
		}
		return page
	})()`)
	call := func(method string) {
		_, err := jsbridge.Await(t.Context(), must(t)(js(t, "Promise").Call("resolve", must(t)(page.Call(method)))))
		require.NoError(t, err)
	}
	defer call("restore")
	locks, steal := jsbridge.NewWebLocks(), lock.Request{Steal: true, Wants: []lock.Want{{Name: "stolen", Mode: lock.Exclusive}}}
	earlier, err := locks.Request(t.Context(), lock.Request{Wants: []lock.Want{{Name: "earlier", Mode: lock.Exclusive}}})
	require.NoError(t, err)
	require.NoError(t, earlier.Release(t.Context()))
	granted := make(chan lock.Grant, 1)
	go func() {
		g, err := locks.Request(t.Context(), steal)
		assert.NoError(t, err)
		granted <- g
	}()
	call("settled") // the goroutine has made its request
	call("steal")
	call("wake")
	g := <-granted
	call("settled")
	lost, err := must(t)(page.Get("lost")).Bool()
	require.NoError(t, err)
	assert.False(t, lost, "the other page lives")
	call("free")
	require.NoError(t, g.Release(t.Context()))
}
