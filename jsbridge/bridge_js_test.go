//go:build js && wasm

package jsbridge_test

import (
	"context"
	_ "embed"
	"errors"
	"testing"
	"time"

	"github.com/hack-pad/safejs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/jsbridge"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
)

// noLeaks fails if a callback outlives the test.
func noLeaks(t *testing.T) {
	t.Helper()
	before := jsbridge.LiveCallbacks()
	t.Cleanup(func() { assert.Equal(t, before, jsbridge.LiveCallbacks(), "callbacks were left behind") })
}

// js evaluates an expression. The test page has no content security policy.
func js(t *testing.T, expression string) safejs.Value {
	t.Helper()
	v, err := must(t)(safejs.Global().Get("Function")).New("return " + expression)
	require.NoError(t, err)
	return must(t)(v.Invoke())
}

func must(t *testing.T) func(safejs.Value, error) safejs.Value {
	return func(v safejs.Value, err error) safejs.Value {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

func text(t *testing.T, v safejs.Value) string {
	t.Helper()
	s, err := v.String()
	require.NoError(t, err)
	return s
}

func TestWebLocks(t *testing.T) {
	noLeaks(t)
	open := func(*testing.T) func() lock.Locker {
		return func() lock.Locker { return jsbridge.NewWebLocks() }
	}
	locktest.RunLocker(t, open)
	locktest.RunTree(t, open)
}

func TestMain(m *testing.M) {
	port, err := jsbridge.Await(context.Background(), load())
	if err == nil {
		port, err = port.Get("Port")
	}
	if err == nil {
		port, err = port.New()
	}
	if err == nil {
		err = jsbridge.Open(port)
	}
	if err != nil {
		panic(err)
	}
	thePort = port
	m.Run()
}

//go:embed port.js
var portSource string

var thePort safejs.Value

func load() safejs.Value {
	function, err := safejs.Global().Get("Function")
	if err == nil {
		function, err = function.New("source", "return import(URL.createObjectURL(new Blob([source], {type: 'text/javascript'})))")
	}
	if err == nil {
		function, err = function.Invoke(portSource)
	}
	if err != nil {
		panic(err)
	}
	return function
}

// The loader closes the port when the program has died.
func TestClosedPortReleasesLocks(t *testing.T) {
	noLeaks(t)
	locker := jsbridge.NewWebLocks()
	want := lock.Request{Wants: []lock.Want{{Name: t.Name(), Mode: lock.Exclusive}}}
	forgotten, err := locker.Request(t.Context(), want)
	require.NoError(t, err)
	_, err = thePort.Call("close")
	require.NoError(t, err)
	require.NoError(t, jsbridge.Open(thePort))
	again, err := locker.Request(t.Context(), want)
	require.NoError(t, err)
	require.NoError(t, again.Release(t.Context()))
	require.NoError(t, forgotten.Release(t.Context()))
}

func TestRefusals(t *testing.T) {
	noLeaks(t)
	locker := jsbridge.NewWebLocks()
	_, err := locker.Request(t.Context(), lock.Request{Wants: []lock.Want{{Name: "-reserved", Mode: lock.Exclusive}}})
	assert.ErrorIs(t, err, lock.ErrInvalidArgument)
	assert.Equal(t, "NotSupportedError", jsbridge.ExceptionName(err))
	_, err = locker.Request(t.Context(), lock.Request{Wants: []lock.Want{{Name: "x", Mode: "sideways"}}})
	assert.ErrorIs(t, err, lock.ErrInvalidArgument)
}

func TestAwait(t *testing.T) {
	noLeaks(t)
	ctx := t.Context()
	v, err := jsbridge.Await(ctx, js(t, "Promise.resolve('done')"))
	require.NoError(t, err)
	assert.Equal(t, "done", text(t, v))

	v, err = jsbridge.Await(ctx, js(t, "new Promise(done => setTimeout(done, 5, 'later'))"))
	require.NoError(t, err)
	assert.Equal(t, "later", text(t, v))

	v, err = jsbridge.Await(ctx, js(t, "'no promise'"))
	require.NoError(t, err)
	assert.Equal(t, "no promise", text(t, v))

	_, err = jsbridge.Await(ctx, js(t, "Promise.reject(new RangeError('too far'))"))
	assert.EqualError(t, err, "RangeError: too far")
	assert.Equal(t, "RangeError", jsbridge.ExceptionName(err))

	_, err = jsbridge.Await(ctx, js(t, "Promise.reject('a bare string')"))
	assert.EqualError(t, err, "a bare string")
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	noLeaks(t)
	why := errors.New("no time")
	ctx, stop := context.WithCancelCause(t.Context())
	deferred := js(t, "Promise.withResolvers()")
	stop(why)
	_, err := jsbridge.Await(ctx, must(t)(deferred.Get("promise")))
	assert.ErrorIs(t, err, why)
	// The promise that loses the race is ignored: no callback, no unhandled rejection.
	_, err = deferred.Call("reject", "late")
	require.NoError(t, err)
	_, err = jsbridge.Await(t.Context(), js(t, "new Promise(done => setTimeout(done))"))
	require.NoError(t, err)
}

func TestExports(t *testing.T) {
	noLeaks(t)
	exports := jsbridge.Exports{Reason: func(err error) any { return err.Error() }}
	hello := must(t)(exports.Func(func(args []safejs.Value) (any, error) {
		return "hello " + text(t, args[0]), nil
	}))
	broken := must(t)(exports.Func(func([]safejs.Value) (any, error) { panic("oops") }))
	failing := must(t)(exports.Func(func([]safejs.Value) (any, error) { return nil, lock.ErrDenied }))

	v, err := jsbridge.Await(t.Context(), must(t)(hello.Invoke("world")))
	require.NoError(t, err)
	assert.Equal(t, "hello world", text(t, v))

	_, err = jsbridge.Await(t.Context(), must(t)(broken.Invoke()))
	assert.ErrorContains(t, err, "runtime-crashed")
	assert.ErrorContains(t, err, "oops")

	_, err = jsbridge.Await(t.Context(), must(t)(failing.Invoke()))
	assert.EqualError(t, err, "acquire-denied")

	v, err = jsbridge.Await(t.Context(), must(t)(hello.Invoke("after the panic")))
	require.NoError(t, err)
	assert.Equal(t, "hello after the panic", text(t, v))
	exports.Close()
	_, err = jsbridge.Await(t.Context(), must(t)(hello.Invoke("nobody")))
	assert.ErrorContains(t, err, "has ended")
}

func TestWithSignal(t *testing.T) {
	noLeaks(t)
	controller := js(t, "new AbortController()")
	signal := must(t)(controller.Get("signal"))
	ctx, stop, err := jsbridge.WithSignal(t.Context(), signal)
	require.NoError(t, err)
	defer stop()
	require.NoError(t, ctx.Err())
	_, err = controller.Call("abort")
	require.NoError(t, err)
	<-ctx.Done()

	already, stop, err := jsbridge.WithSignal(t.Context(), signal)
	require.NoError(t, err)
	defer stop()
	assert.Error(t, already.Err())

	never, stop, err := jsbridge.WithSignal(t.Context(), safejs.Undefined())
	require.NoError(t, err)
	stop()
	assert.NoError(t, never.Err())
}

func TestChannel(t *testing.T) {
	noLeaks(t)
	a, err := jsbridge.NewChannel(t.Name())
	require.NoError(t, err)
	defer a.Close()
	b, err := jsbridge.NewChannel(t.Name())
	require.NoError(t, err)
	defer b.Close()
	heard := make(chan lock.Message, 1)
	stop, err := b.Listen(func(m lock.Message) { heard <- m })
	require.NoError(t, err)
	defer stop()

	sent := lock.Message{Kind: lock.HereIAm, Round: "1",
		Holders: []lock.Holder{{Resource: "r", Mode: lock.Shared, Strategy: lock.WebLock, OwnerID: "o", OwnerName: "n", LeaseID: "l", Token: 1795223524605, TTL: 25 * time.Second,
			Paths: [][]string{{}, {"a", "b"}}, Slots: 3, Slot: 2, Within: "i", Wants: []lock.Want{{Name: "n", Mode: lock.Shared}, {Name: "m", Mode: lock.Exclusive}}}},
		Waiters: []lock.Waiter{{Resource: "r", Mode: lock.Exclusive, OwnerID: "w", LeaseID: "x", Held: []lock.Want{{Name: "h", Mode: lock.Shared}},
			Awaits: []lock.Want{{Name: "a", Mode: lock.Exclusive}}}}}
	require.NoError(t, a.Post(sent))
	assert.Equal(t, sent, <-heard)
	probe := lock.Message{Kind: lock.WhoIsInTheWay, Round: "2",
		Probe: lock.Probe{Initiator: "l", Since: time.UnixMilli(1795223524605), Wants: []lock.Want{{Name: "n", Mode: lock.Shared}}}}
	require.NoError(t, a.Post(probe))
	assert.Equal(t, probe, <-heard)

	// Other scripts of the origin may post anything.
	rogue := must(t)(must(t)(safejs.Global().Get("BroadcastChannel")).New(t.Name()))
	defer func() { _, _ = rogue.Call("close") }()
	for _, nonsense := range []string{"null", "1", "'x'", "[]", "{holders: 3}", "{kind: 7, holders: [null, 1, {}]}"} {
		_, err := rogue.Call("postMessage", js(t, "("+nonsense+")"))
		require.NoError(t, err)
		assert.Empty(t, (<-heard).Kind, nonsense)
	}
}
