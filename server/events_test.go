package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

func (e event) revision() int64 { n, _ := e["revision"].(float64); return int64(n) }

func TestEventsTellEverybodyEverything(t *testing.T) {
	t.Parallel()
	first := start(t, nil)
	second := first.another(t, nil)
	near, far := first.events(t, "r", ""), second.events(t, "r", "")
	other := first.events(t, "rr", "")
	ann := first.as(t, "ann").named("Ann")
	bob := second.as(t, "bob").named("Bob")

	token := ann.lock("r")
	saved := ann.save("r", token, "text")
	ann.do("PUT", lockOf("r"), nil) // a heartbeat is no event
	waited := make(chan answer, 1)
	go func() {
		a, err := bob.try(t.Context(), "POST", lockOf("r")+"?wait_ms=20000", nil)
		assert.NoError(t, err)
		waited <- a
	}()
	ann.seesWaiting("documents/r", 1)
	ann.do("DELETE", lockOf("r"), nil)
	later := (<-waited).token()
	bob.do("DELETE", lockOf("r"), nil)
	ann.lock("rr")

	for _, s := range []stream{near, far} {
		assertTold(t, s, token, later, saved)
	}
	assert.Equal(t, "rr", other.next()["document"], "the client of another document gets its own events only")
}

// assertTold checks the events of the document r: Ann's lock, her save, and the handover to Bob, who then releases.
func assertTold(t *testing.T, s stream, token, later int64, saved answer) {
	t.Helper()
	var types []string
	last := int64(0)
	list := map[string]event{}
	for range 5 {
		e := s.next()
		assert.Equal(t, []any{"r", "r"}, []any{e["document"], e["room_id"]})
		assert.Greater(t, e.revision(), last)
		last = e.revision()
		types = append(types, fmt.Sprint(e["type"], " ", e["reason"], " ", e["token"]))
		list[fmt.Sprint(e["type"], e["token"])] = e
	}
	assert.Equal(t, []string{
		fmt.Sprint("document.locked <nil> ", float64(token)),
		fmt.Sprint("document.updated <nil> ", float64(token)),
		fmt.Sprint("document.unlocked transferred ", float64(token)),
		fmt.Sprint("document.locked <nil> ", float64(later)),
		fmt.Sprint("document.unlocked released ", float64(later)),
	}, types)
	locked := list[fmt.Sprint(remote.NoticeLocked, float64(token))]
	assert.Equal(t, sessions.HolderID("ann"), locked["holder_id"])
	assert.Equal(t, "Ann", locked["holder_name"])
	assert.NotEmpty(t, locked["locked_at"])
	assert.NotEmpty(t, locked["expires_at"])
	assert.Equal(t, token, locked.revision())
	updated := list[fmt.Sprint(remote.NoticeUpdated, float64(token))]
	assert.Equal(t, saved.body["etag"], updated["etag"])
	assert.Equal(t, saved.body["saved_at"], updated["saved_at"])
}

func TestResumingAfterARevision(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	live := s.events(t, "r", "")
	var all []event
	for range 4 {
		ann.lock("r")
		ann.do("DELETE", lockOf("r"), nil)
		all = append(all, live.next(), live.next())
	}
	for i, seen := range all {
		resumed := s.events(t, "r", fmt.Sprint("?after=", seen.revision()))
		for _, want := range all[i+1:] {
			assert.Equal(t, want, resumed.next())
		}
	}
	whole := s.events(t, "r", "?after=0")
	assert.Equal(t, all[0], whole.next())

	// A gapless beginning: the state by GET, then what came after it.
	shown := ann.do("GET", lockOf("r"), nil)
	from := s.events(t, "r", "?after="+shown.header.Get("Holdfast-Revision"))
	ann.lock("r")
	assert.Equal(t, remote.NoticeLocked, from.next()["type"])
}

func TestCompactedEventsComeAsTheState(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann").named("Ann")
	old := ann.lock("r")
	ann.do("DELETE", lockOf("r"), nil)
	token := ann.lock("r")
	listening := s.events(t, "r", fmt.Sprint("?after=", token))
	saved := ann.save("r", token, "text")
	// A server that has not learned of all this before the compaction ends its streams, see TestHubThatMissesACompaction.
	require.Equal(t, remote.NoticeUpdated, listening.next()["type"])
	_, now, err := s.Store().Get(t.Context(), "any")
	require.NoError(t, err)
	require.NoError(t, s.Store().Compact(t.Context(), now))

	for _, after := range []int64{0, old, now + 1_000_000} {
		resumed := s.events(t, "r", fmt.Sprint("?after=", after))
		state := resumed.next()
		assert.Equal(t, remote.NoticeState, state["type"])
		assert.Equal(t, true, state["is_locked"])
		assert.Equal(t, "Ann", state["holder_name"])
		assert.Equal(t, float64(token), state["token"])
		assert.Equal(t, saved.body["etag"], state["etag"])
		assert.GreaterOrEqual(t, state.revision(), now)
		saved = ann.save("r", token, fmt.Sprint("more", after))
		assert.Equal(t, remote.NoticeUpdated, resumed.next()["type"])
	}
	empty := s.events(t, "never", "?after=0").next()
	assert.Equal(t, false, empty["is_locked"])
}

// Sockets that break and come back, on two servers, while locks are taken and given back.
func TestReconnectingSocketsMissNothingAndRepeatNothing(t *testing.T) {
	t.Parallel()
	first := start(t, func(c *server.Config) { c.Rate, c.AddressRate = 0, 0 })
	servers := []*instance{first, first.another(t, func(c *server.Config) { c.Rate, c.AddressRate = 0, 0 })}
	const sockets, rounds = 40, 30
	begin := first.as(t, "x").do("GET", lockOf("r"), nil).header.Get("Holdfast-Revision")
	var want []int64
	var wait sync.WaitGroup
	seen := make([][]int64, sockets)
	for i := range sockets {
		wait.Go(func() { seen[i] = follow(t, servers, i, mustInt(t, begin)) })
	}
	for i := range rounds {
		c := servers[i%2].as(t, "ann")
		want = append(want, c.lock("r"))
		require.Equal(t, http.StatusOK, c.do("DELETE", lockOf("r"), nil).status)
	}
	end := first.as(t, "ann")
	want = append(want, end.lock("r"))
	require.Equal(t, http.StatusOK, end.save("r", want[len(want)-1], "the end").status)
	wait.Wait()
	for i, list := range seen {
		var tokens []int64
		for j := 0; j < len(list); j += 2 { // locked, unlocked, locked …
			tokens = append(tokens, list[j])
		}
		assert.Equal(t, want, tokens, "socket %d", i)
	}
}

// follow reads events over sockets that it drops every few events, until something is saved.
func follow(t *testing.T, servers []*instance, i int, after int64) (seen []int64) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for connection := 0; ; connection++ {
		url := fmt.Sprintf("%s/api/documents/r/events?after=%d", servers[(i+connection)%2].URL, after)
		conn, _, err := websocket.Dial(ctx, url, nil)
		if !assert.NoError(t, err) {
			return seen
		}
		defer conn.CloseNow()
		for n := 0; n < 3+i%5; n++ {
			_, text, err := conn.Read(ctx)
			if !assert.NoError(t, err) {
				return seen
			}
			var e event
			assert.NoError(t, json.Unmarshal(text, &e))
			if e["type"] == remote.NoticeUpdated {
				return seen
			}
			after = e.revision()
			seen = append(seen, after)
		}
		_ = conn.CloseNow()
	}
}

func TestSocketsOfOtherOriginsAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.Origins = []string{"https://trusted.example"} })
	for origin, status := range map[string]int{
		"": http.StatusSwitchingProtocols, s.URL: http.StatusSwitchingProtocols,
		"https://trusted.example": http.StatusSwitchingProtocols,
		"https://evil.example":    http.StatusForbidden, "null": http.StatusForbidden, "https://trusted.example.evil": http.StatusForbidden,
	} {
		for _, path := range []string{"/api/documents/r/events", "/ws"} {
			header := http.Header{}
			if origin != "" {
				header.Set("Origin", origin)
			}
			conn, response, err := websocket.Dial(t.Context(), s.URL+path, &websocket.DialOptions{HTTPHeader: header})
			if err == nil {
				_ = conn.CloseNow()
			}
			assert.Equal(t, status, response.StatusCode, "%s from %q", path, origin)
		}
	}
}

func TestTheServerPingsAndEndsDeadSockets(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.Ping = time.Second }) // a slow machine answers within that
	pings := make(chan struct{}, 100)
	conn, _, err := websocket.Dial(t.Context(), s.URL+"/api/documents/r/events", &websocket.DialOptions{
		OnPingReceived: func(context.Context, []byte) bool { pings <- struct{}{}; return len(pings) < 4 },
	})
	require.NoError(t, err)
	// It answers three pings, then no more: two that are missed end it.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, _, err = conn.Read(ctx)
	require.Error(t, err)
	assert.NoError(t, ctx.Err(), "the server ended it")
	assert.GreaterOrEqual(t, len(pings), 5)
}

func TestStoppingDrainsTheSockets(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	events := s.events(t, "r", "")
	s.as(t, "ann").lock("r")
	events.next()
	waiting := make(chan answer, 1)
	bob := s.as(t, "bob")
	go func() {
		a, err := bob.try(t.Context(), "POST", lockOf("r")+"?wait_ms=60000", nil)
		assert.NoError(t, err)
		waiting <- a
	}()
	bob.seesWaiting("documents/r", 1)
	closed := make(chan error, 1)
	go func() { _, _, err := events.conn.Read(t.Context()); closed <- err }()
	s.Drain(t.Context())
	assert.Equal(t, websocket.StatusGoingAway, websocket.CloseStatus(<-closed))
	assertError(t, <-waiting, http.StatusServiceUnavailable, "unavailable") // long before its time to wait is over
	assertError(t, bob.do("GET", "/api/documents/r/events", nil), http.StatusServiceUnavailable, "unavailable")
}
