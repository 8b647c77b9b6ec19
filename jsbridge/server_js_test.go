//go:build js && wasm

package jsbridge_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hack-pad/safejs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/jsbridge"
	"github.com/holdfast-dev/holdfast/remote"
)

// answering replaces fetch by a function of (url, options) for one test.
func answering(t *testing.T, fetch string) {
	t.Helper()
	global := safejs.Global()
	real := must(t)(global.Get("fetch"))
	require.NoError(t, global.Set("fetch", js(t, fetch)))
	t.Cleanup(func() { require.NoError(t, global.Set("fetch", real)) })
}

func TestServerSends(t *testing.T) {
	noLeaks(t)
	// The reply repeats the request.
	answering(t, `async (url, { method, headers, body, credentials, redirect }) => Response.json({
		error: method + " " + url, message: JSON.stringify([headers, body && typeof body !== "string" ? [...body] : body ?? null, credentials, redirect]) })`)
	server := jsbridge.NewServer("https://locks.example")

	reply, err := server.Send(t.Context(), remote.Request{Method: "POST", Path: "/a?b=c", Fields: map[string]any{"holder_name": "Ann"}})
	require.NoError(t, err)
	assert.Equal(t, "POST https://locks.example/a?b=c", reply.Error)
	assert.JSONEq(t, `[{"Content-Type": "application/json"}, "{\"holder_name\":\"Ann\"}", "include", "error"]`, reply.Message)

	reply, err = server.Send(t.Context(), remote.Request{Method: "PUT", Token: 1795223524605, Body: []byte{0, 255},
		Save: remote.Save{Draft: "d-1", Number: 7, Order: 3}, Bearer: "a.b.c"})
	require.NoError(t, err)
	assert.JSONEq(t, `[{"Authorization": "Bearer a.b.c", "Holdfast-Token": "1795223524605", "Holdfast-Save": "d-1/7", "Holdfast-Order": "3"}, [0, 255], "include", "error"]`, reply.Message)
}

func TestServerReads(t *testing.T) {
	noLeaks(t)
	server := jsbridge.NewServer("")
	answering(t, `async () => Response.json({ token: 1795223524605, locked_at: "2026-11-21T10:00:00.250Z", expires_at: "2026-11-21T10:00:30.250Z",
		saved_at: "2026-11-21T10:00:01.000Z", holder_name: "Ann", is_my_lock: true, paths: [["documents", "plan", "a/b"]], etag: '"x"' }, { status: 409, headers: { "Retry-After": "3" } })`)
	reply, err := server.Send(t.Context(), remote.Request{Method: "POST"})
	require.NoError(t, err)
	at := time.Date(2026, 11, 21, 10, 0, 0, 250e6, time.UTC)
	assert.Equal(t, remote.Reply{Status: 409, RetryAfter: 3 * time.Second, Token: 1795223524605, HolderName: "Ann", Mine: true, Paths: [][]string{{"documents", "plan", "a/b"}}, ETag: `"x"`,
		LockedAt: at.Local(), ExpiresAt: at.Add(30 * time.Second).Local(), SavedAt: at.Add(750 * time.Millisecond).Local()}, reply)

	answering(t, `async () => Response.json({ lease_id: "x.y", slot: 2, ticket: "t", tokens: [1795223524605, 7], holders: [{ holder_name: "Ben", is_mine: true, paths: [["documents", "plan"]] }, { holder_name: "Cat" }] }, { status: 408 })`)
	reply, err = server.Send(t.Context(), remote.Request{Method: "POST"})
	require.NoError(t, err)
	assert.Equal(t, remote.Reply{Status: 408, Lease: "x.y", Slot: 2, HolderName: "Ben", Mine: true, Ticket: "t", Tokens: []int64{1795223524605, 7},
		Holders: []remote.Held{{Paths: [][]string{{"documents", "plan"}}, HolderName: "Ben", Mine: true}, {HolderName: "Cat"}}}, reply)

	answering(t, `async () => new Response(new Uint8Array([1, 0, 255]), { headers: { ETag: '"x"', "Holdfast-Token": "7", "Holdfast-Save": "d-1/7", "Holdfast-Saved-At": "2026-11-21T10:00:01.000Z" } })`)
	reply, err = server.Send(t.Context(), remote.Request{Method: "GET"})
	require.NoError(t, err)
	assert.Equal(t, remote.Reply{Status: 200, ETag: `"x"`, Token: 7, Save: remote.Save{Draft: "d-1", Number: 7}, SavedAt: at.Add(750 * time.Millisecond).Local(), Body: []byte{1, 0, 255}}, reply)

	// A proxy announces an hour of maintenance, which may be shorter. The page looks again before: it keeps the lock of this machine meanwhile.
	answering(t, `async () => Response.json({}, { status: 503, headers: { "Retry-After": "3600" } })`)
	reply, err = server.Send(t.Context(), remote.Request{Method: "POST"})
	require.NoError(t, err)
	assert.Equal(t, remote.Reply{Status: 503, RetryAfter: 30 * time.Second}, reply)

	// Another server may answer at that address.
	for _, body := range []string{`null`, `[]`, `{"token": "x", "error": {}, "locked_at": 7}`, `{"token": null}`, `{"holders": [null]}`, `{"tokens": [{}, "x", null]}`, `{"tokens": 7}`, `{"tokens": null}`, `{"paths": null}`, `{"paths": [{}, "x", [7, null]]}`, `{`} {
		answering(t, `async () => new Response(`+"`"+body+"`"+`, { headers: { "Content-Type": "application/json" } })`)
		reply, err := server.Send(t.Context(), remote.Request{Method: "GET"})
		if err == nil {
			assert.Zero(t, reply.Token, body)
		}
	}
}

func TestServerFails(t *testing.T) {
	noLeaks(t)
	server := jsbridge.NewServer("")
	answering(t, `async () => { throw new TypeError("Failed to fetch"); }`)
	_, err := server.Send(t.Context(), remote.Request{Method: "GET"})
	assert.ErrorContains(t, err, "Failed to fetch")

	// The request is cancelled when nobody waits for it any more.
	require.NoError(t, safejs.Global().Set("calledOff", false))
	answering(t, `(_, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => { calledOff = true; reject(signal.reason); }))`)
	cause := errors.New("enough")
	ctx, stop := context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { stop(cause) })
	_, err = server.Send(ctx, remote.Request{Method: "GET"})
	require.ErrorIs(t, err, cause)
	off, err := js(t, "calledOff").Bool()
	require.NoError(t, err)
	assert.True(t, off)
}

// socket replaces WebSocket by a class with the given body for one test.
func socket(t *testing.T, body string) {
	t.Helper()
	global := safejs.Global()
	real := must(t)(global.Get("WebSocket"))
	require.NoError(t, global.Set("WebSocket", js(t, `(class { `+body+` })`)))
	t.Cleanup(func() { require.NoError(t, global.Set("WebSocket", real)) })
}

func TestServerSendsEvents(t *testing.T) {
	noLeaks(t)
	server := jsbridge.NewServer("https://locks.example")
	socket(t, `constructor(url) { setTimeout(() => {
		for (const data of [{ type: url, revision: 1795223524605, token: 7, ask_id: "x", holder_name: "Ann" }, { type: "document.updated" }]) this.onmessage({ data: JSON.stringify(data) });
		setTimeout(() => this.onclose());
	}); }
	close() {}`)
	var heard []remote.Notice
	require.Error(t, server.Listen(t.Context(), remote.Request{Path: "/a?after=3"}, func(n remote.Notice) { heard = append(heard, n) }))
	assert.Equal(t, []remote.Notice{{Type: "wss://locks.example/a?after=3", Revision: 1795223524605, Token: 7, Ask: "x", HolderName: "Ann"}, {Type: "document.updated"}}, heard)

	// The token of the user is in no URL.
	socket(t, `constructor(url, protocols) { setTimeout(() => { this.onmessage({ data: JSON.stringify({ type: url + protocols.join() }) }); setTimeout(() => this.onclose()); }); }
	close() {}`)
	for token, want := range map[string]string{"": "wss://locks.example/a", "t~?o>k": "wss://locks.example/aholdfast,holdfast.bearer.dH4_bz5r", "x": "wss://locks.example/aholdfast,holdfast.bearer.eA"} {
		heard = nil
		require.Error(t, server.Listen(t.Context(), remote.Request{Path: "/a", Bearer: token}, func(n remote.Notice) { heard = append(heard, n) }))
		require.Len(t, heard, 1)
		assert.Equal(t, want, heard[0].Type)
	}

	// A message that is not Holdfast's ends the connection.
	socket(t, `constructor() { setTimeout(() => this.onmessage({ data: "{" })); }
	close() { setTimeout(() => this.onclose()); }`)
	require.Error(t, server.Listen(t.Context(), remote.Request{}, func(remote.Notice) { t.Error("heard") }))

	// The connection ends with its listener.
	require.NoError(t, safejs.Global().Set("closedSockets", 0))
	socket(t, `close() { closedSockets++; }`)
	ctx, stop := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, stop)
	require.ErrorIs(t, server.Listen(ctx, remote.Request{}, nil), context.Canceled)
	closed, err := js(t, "closedSockets").Int()
	require.NoError(t, err)
	assert.Equal(t, 1, closed)
}
