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
