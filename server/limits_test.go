package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
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

// A client that invents a secret for each request gets no more than the allowance of its address.
func TestInventedSecretsBringNoAllowance(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.NewRate, c.NewBurst = 0.001, 5 })
	passed := 0
	for i := range 30 {
		if s.as(t, fmt.Sprint("invented-", i)).do("GET", lockOf("r"), nil).status == http.StatusOK {
			passed++
		}
	}
	assert.Equal(t, 5, passed)
	assert.Equal(t, http.StatusOK, s.as(t, "invented-0").do("GET", lockOf("r"), nil).status, "one that is known goes on")

	s = start(t, func(c *server.Config) { c.AddressRate, c.AddressBurst = 0.001, 7 })
	passed = 0
	for i := range 30 {
		if s.as(t, fmt.Sprint(i%2)).do("GET", lockOf("r"), nil).status == http.StatusOK {
			passed++
		}
	}
	assert.Equal(t, 7, passed)
}

// A session asks for locks on many long places. Each takes as much of the store as many other locks do, so it counts as many requests.
func TestALargeLockCountsAsManyRequests(t *testing.T) {
	t.Parallel()
	many := make([][]string, 16)
	for size, passes := range map[int]int{1: 20, 128: 5} {
		s := start(t, func(c *server.Config) { c.Rate, c.Burst = 0.001, 100 })
		passed := 0
		for n := range 20 {
			for i := range many {
				many[i] = []string{"documents", strings.Repeat(string(rune('a'+n)), size), strconv.Itoa(i)}
			}
			got := s.as(t, "eve").do("POST", "/api/locks", map[string]any{"paths": many})
			if got.status == http.StatusOK {
				passed++
			} else {
				assertError(t, got, http.StatusTooManyRequests, "rate_limited")
			}
		}
		assert.Equal(t, passes, passed, size)
	}
	long := []string{"documents"}
	for range 14 {
		long = append(long, strings.Repeat("<", 128))
	}
	s := start(t, nil)
	assert.Equal(t, http.StatusOK, s.as(t, "eve").do("POST", "/api/locks", map[string]any{"paths": [][]string{append(long, "x")}}).status)
	for i := range many {
		many[i] = append(long[:len(long):len(long)], strconv.Itoa(i))
	}
	assertError(t, s.as(t, "bob").do("POST", "/api/locks", map[string]any{"paths": many[:4]}), http.StatusBadRequest, "invalid_request")
}

// A page of a thousand entries counts as ten of a hundred.
func TestLargePagesCountAsSeveralRequests(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/api/documents?", "/api/locks?path=documents&"} {
		for limit, passes := range map[string]int{"": 20, "limit=100": 20, "limit=1000": 2} {
			s := start(t, func(c *server.Config) { c.Rate, c.Burst = 0.001, 20 })
			passed := 0
			for range 30 {
				if s.as(t, "eve").do("GET", path+limit, nil).status == http.StatusOK {
					passed++
				}
			}
			assert.Equal(t, passes, passed, path+limit)
		}
	}
}

// Only a proxy that is trusted says where a request comes from.
func TestAddressesBehindAProxy(t *testing.T) {
	t.Parallel()
	for trusted, passes := range map[string]int{"": 3, "127.0.0.0/8": 6} {
		s := start(t, func(c *server.Config) {
			c.AddressRate, c.AddressBurst = 0.001, 3
			if trusted != "" {
				c.TrustedProxies = []string{trusted}
			}
		})
		passed := 0
		for i := range 20 {
			from := s.as(t, "ann").with("X-Forwarded-For", fmt.Sprintf("203.0.113.9, 198.51.100.%d", i%2))
			if from.do("GET", lockOf("r"), nil).status == http.StatusOK {
				passed++
			}
		}
		assert.Equal(t, passes, passed, "trusted: %q", trusted)
	}
}

// A host has a whole /64 of IPv6, so all its addresses have one allowance. Those of IPv4 have one each.
func TestAddressesOfOneNetworkShareAnAllowance(t *testing.T) {
	t.Parallel()
	for pattern, passes := range map[string]int{
		"2001:db8:0:1::%x": 3, "2001:db8:0:%x::1": 10, "198.51.100.%d": 10, "::ffff:198.51.100.%d": 10,
		"198.51.100.1:%d": 3, "[2001:db8::1]:%d": 3,
	} {
		s := start(t, func(c *server.Config) {
			c.AddressRate, c.AddressBurst, c.TrustedProxies = 0.001, 3, []string{"127.0.0.0/8"}
		})
		passed := 0
		for i := range 10 {
			if s.as(t, "ann").with("X-Forwarded-For", fmt.Sprintf(pattern, i+1)).do("GET", lockOf("r"), nil).status == http.StatusOK {
				passed++
			}
		}
		assert.Equal(t, passes, passed, pattern)
	}
}

func TestCookiesThatTheServerHasNotMadeAreNoSession(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	given := s.as(t, "").do("GET", lockOf("r"), nil).header.Get("Set-Cookie")
	value, _, _ := strings.Cut(given, ";")
	assert.Empty(t, s.as(t, "").with("Cookie", value).do("GET", lockOf("r"), nil).header.Get("Set-Cookie"))
	other := s.another(t, nil)
	assert.Empty(t, other.as(t, "").with("Cookie", value).do("GET", lockOf("r"), nil).header.Get("Set-Cookie"), "all servers of a store")
	secret, _, _ := strings.Cut(value, ".")
	for _, fixed := range []string{secret, secret + ".x", value[:len(value)-1] + "-"} {
		if fixed == value {
			continue
		}
		assert.NotEmpty(t, s.as(t, "").with("Cookie", fixed).do("GET", lockOf("r"), nil).header.Get("Set-Cookie"), fixed)
	}

	secure := start(t, func(c *server.Config) { c.SecureCookie = true })
	given = secure.as(t, "").do("GET", lockOf("r"), nil).header.Get("Set-Cookie")
	assert.True(t, strings.HasPrefix(given, sessions.SecureCookieName+"_"), given)
	assert.Contains(t, given, "Secure")
	assert.NotContains(t, given, "Domain")
	value, _, _ = strings.Cut(strings.TrimPrefix(given, "__Host-"), ";")
	assert.NotEmpty(t, secure.as(t, "").with("Cookie", value).do("GET", lockOf("r"), nil).header.Get("Set-Cookie"), "set without TLS")
}

func TestHosts(t *testing.T) {
	t.Parallel()
	ask := func(s *instance, host, path string) int {
		request, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+path, nil)
		require.NoError(t, err)
		request.Host = host
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		response.Body.Close()
		return response.StatusCode
	}
	s := start(t, func(c *server.Config) { c.Hosts = []string{"locks.example.com"} })
	for host, status := range map[string]int{
		"localhost": 200, "localhost:8080": 200, "127.0.0.1:1": 200, "[::1]:80": 200, "app.localhost": 200,
		"locks.example.com": 200, "LOCKS.example.com:443": 200,
		"evil.example": 421, "localhost.evil.example": 421, "10.0.0.1": 421, "": 200,
	} {
		if host != "" {
			assert.Equal(t, status, ask(s, host, lockOf("r")), host)
		}
	}
	assert.Equal(t, 200, ask(s, "10.0.0.1", "/healthz"))
	assert.Equal(t, 200, ask(start(t, func(c *server.Config) { c.Hosts = []string{"*"} }), "any.example", lockOf("r")))
}

func TestDotsAreNoDocuments(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	for _, id := range []string{".", "..", "%2e", "%2E%2e"} {
		assertError(t, ann.do("GET", "/api/documents/"+id+"/lock", nil), http.StatusBadRequest, "invalid_request")
	}
	for _, id := range []string{"...", ".a", "a..b"} {
		assert.Equal(t, http.StatusOK, ann.do("GET", lockOf(url.PathEscape(id)), nil).status, id)
	}
}

// A query that cannot be read is refused, not left out: a request that wants to wait would not wait.
func TestMalformedQueryIsRefused(t *testing.T) {
	t.Parallel()
	ann := start(t, nil).as(t, "ann")
	for _, query := range []string{"wait_ms=%zz", "ticket=a;wait_ms=1", "wait_ms=1&x=%"} {
		assertError(t, ann.do("POST", lockOf("r")+"?"+query, nil), http.StatusBadRequest, "invalid_request")
	}
}

// A malformed handshake gets an error of the API, and so does one that only a WebSocket can answer.
func TestMalformedHandshakeIsRefused(t *testing.T) {
	t.Parallel()
	ann := start(t, nil).as(t, "ann").with("Connection", "Upgrade").with("Upgrade", "websocket")
	const events = "/api/documents/r/events"
	assertError(t, ann.do("GET", events, nil), http.StatusBadRequest, "invalid_request")
	assertError(t, ann.with("Sec-WebSocket-Version", "13").do("GET", events, nil), http.StatusBadRequest, "invalid_request")
	old := ann.with("Sec-WebSocket-Version", "8").with("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==").do("GET", events, nil)
	assertError(t, old, http.StatusBadRequest, "invalid_request")
	assert.Equal(t, "13", old.header.Get("Sec-WebSocket-Version"))
	assertError(t, start(t, nil).as(t, "ann").do("GET", events, nil), http.StatusUpgradeRequired, "upgrade_required")
}

func TestRoomSocketNeedsGET(t *testing.T) {
	t.Parallel()
	ann := start(t, nil).as(t, "ann")
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS"} {
		a := ann.do(method, "/ws", nil)
		assertError(t, a, http.StatusMethodNotAllowed, "method_not_allowed")
		assert.Equal(t, "GET", a.header.Get("Allow"), method)
		assert.Equal(t, "application/json", a.header.Get("Content-Type"), method)
	}
}

func TestASessionHasBounds(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.MaxLocks = 3 })
	ann := s.as(t, "ann")
	for i := range 3 {
		ann.lock(fmt.Sprint(i))
	}
	ann.mayHaveNoMore()
	assert.Equal(t, http.StatusOK, ann.do("POST", lockOf("1"), nil).status, "a session at its bound extends what it holds")
	assert.Equal(t, http.StatusOK, s.as(t, "bob").do("POST", lockOf("bobs"), nil).status)
	ann.do("DELETE", lockOf("0"), nil)
	require.Eventually(t, func() bool { return ann.do("POST", lockOf("0"), nil).status == http.StatusOK }, 30*time.Second, time.Millisecond)

	all := object{"paths": [][]string{{"documents"}}}
	assertError(t, ann.do("POST", "/api/locks", all), http.StatusForbidden, "not_allowed")
}

// A session may wait with so many requests, and no more.
func TestWaitersOfOneSessionHaveABound(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.MaxWaiting = 2 })
	ann, bob := s.as(t, "ann"), s.as(t, "bob")
	ctx, stop := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for i := range 3 {
		ann.lock(fmt.Sprint(i))
	}
	for i := range 2 {
		waiting.Go(func() { _, _ = bob.try(ctx, "POST", lockOf(fmt.Sprint(i))+"?wait_ms=20000", nil) })
		ann.seesWaiting(fmt.Sprint("documents/", i), 1)
	}
	require.Eventually(t, func() bool { // the server counts those that its own view shows
		return bob.do("POST", lockOf("2")+"?wait_ms=1", nil).body["error"] == "too_many_locks"
	}, 30*time.Second, 5*time.Millisecond)
	assertError(t, bob.do("POST", lockOf("2")+"?wait_ms=20000", nil), http.StatusTooManyRequests, "too_many_locks")
	assert.Equal(t, http.StatusOK, bob.do("POST", lockOf("free"), nil).status, "a request that does not wait is no waiter")
	stop()
	waiting.Wait()
}

// The server remembers so many tickets of a session, whatever became of them. The session may still use and give up those that the
// server remembers already.
func TestTicketsOfOneSessionHaveABound(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.MaxTickets = 4 })
	ann, bob := s.as(t, "ann"), s.as(t, "bob")
	ann.lock("r")
	for i := range 2 { // places in line that nobody waits at
		ctx, cut := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() {
			defer close(left)
			_, _ = bob.try(ctx, "POST", lockOf("r")+fmt.Sprint("?wait_ms=20000&ticket=line-", i), nil)
		}()
		ann.seesWaiting("documents/r", 1)
		cut()
		<-left
		ann.seesWaiting("documents/r", 0)
	}
	require.Equal(t, http.StatusOK, bob.do("DELETE", "/api/locks?ticket=given-up", nil).status)
	released := bob.do("POST", lockOf("bobs")+"?ticket=released", nil)
	require.Equal(t, http.StatusOK, released.status)
	require.Equal(t, http.StatusOK, bob.do("DELETE", lockOf("bobs"), nil).status)

	tooMany := func(a answer) bool { return a.status == http.StatusTooManyRequests && a.code() == "too_many_locks" }
	n := 0
	require.Eventually(t, func() bool {
		n++
		return tooMany(bob.do("DELETE", fmt.Sprint("/api/locks?ticket=more-", n), nil))
	}, 30*time.Second, time.Millisecond, "as soon as the server has seen them")
	assert.True(t, tooMany(bob.do("POST", lockOf("free")+"?ticket=new", nil)))
	assert.Equal(t, http.StatusOK, bob.do("POST", lockOf("plain"), nil).status, "a request without a ticket")
	assert.Equal(t, http.StatusOK, s.as(t, "eve").do("POST", lockOf("eves")+"?ticket=eves", nil).status, "another session")
	assertError(t, bob.do("POST", lockOf("r")+"?wait_ms=1&ticket=line-0", nil), http.StatusConflict, "already_locked")
	assert.Equal(t, http.StatusOK, bob.do("DELETE", "/api/locks?ticket=line-1", nil).status)
	assertError(t, bob.do("POST", lockOf("r")+"?wait_ms=20000&ticket=line-1", nil), http.StatusConflict, "given_up")
}

// A lease is given back by its ticket also when the session has as many tickets as it may.
func TestTheBoundOfTicketsKeepsNoLease(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.MaxTickets = 2 })
	bob := s.as(t, "bob")
	require.Equal(t, http.StatusOK, bob.do("POST", lockOf("r")+"?ticket=held", nil).status)
	for i := range 2 {
		require.Equal(t, http.StatusOK, bob.do("DELETE", fmt.Sprint("/api/locks?ticket=", i), nil).status)
	}
	require.Equal(t, http.StatusOK, bob.do("DELETE", "/api/locks?ticket=held", nil).status)
	assert.Equal(t, http.StatusOK, s.as(t, "ann").do("POST", lockOf("r"), nil).status)
}

// A session may make so many documents. A document that is deleted makes room for another, whoever deletes it.
func TestDocumentsOfOneSessionHaveABound(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.MaxDocuments = 2 })
	ann, bob := s.as(t, "ann"), s.as(t, "bob")
	tokens := map[string]int64{}
	for _, document := range []string{"a", "b", "c"} {
		tokens[document] = ann.lock(document)
	}
	for _, document := range []string{"a", "b", "a"} {
		require.Equal(t, http.StatusOK, ann.save(document, tokens[document], "text").status)
	}
	assertError(t, ann.save("c", tokens["c"], "text"), http.StatusInsufficientStorage, "too_many_documents")
	assert.Equal(t, http.StatusOK, bob.save("d", bob.lock("d"), "text").status)

	require.Equal(t, http.StatusOK, ann.do("DELETE", lockOf("a"), nil).status)
	token := strconv.FormatInt(bob.lock("a"), 10)
	require.Equal(t, http.StatusOK, bob.with(remote.HeaderToken, token).do("DELETE", "/api/documents/a", nil).status)
	assert.Equal(t, http.StatusOK, ann.save("c", tokens["c"], "text").status)
}

// The policy limits the locks and documents of a user in all sessions together, and of each user alone.
func TestLimitsOfAUser(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t, "user:root * lock write\nsigned-in * lock write max-locks=2 max-documents=1\n")
	session := func(user, name string) client { return s.as(t, user+"-key").with("Holdfast-Session", name) }
	one, other, bob, root := session("ann", "one"), session("ann", "other"), session("bob", "one"), session("root", "one")
	first := one.lock("a")
	place := other.do("POST", "/api/locks", map[string]any{"paths": [][]string{{"place"}}})
	require.Equal(t, http.StatusOK, place.status)
	lease, _ := place.body["lease_id"].(string)
	// The limit counts what the server has seen of the store. To give up a ticket, it waits until it has seen everything before.
	require.Equal(t, http.StatusOK, one.do("DELETE", "/api/locks?ticket=none", nil).status)
	for _, session := range []client{one, other} {
		assertError(t, session.do("POST", lockOf("b"), nil), http.StatusTooManyRequests, "too_many_locks")
		assertError(t, session.do("POST", lockOf("b")+"?wait_ms=1000", nil), http.StatusTooManyRequests, "too_many_locks")
	}
	assert.Equal(t, first, one.lock("a"), "a repeat extends")
	assert.Equal(t, http.StatusOK, one.do("PUT", lockOf("a"), nil).status)
	for i := range 3 {
		root.lock(fmt.Sprint("root-", i))
	}
	bob.lock("bobs")
	require.Equal(t, http.StatusOK, other.do("DELETE", "/api/locks/"+lease, nil).status)
	require.Eventually(t, func() bool { return other.do("POST", lockOf("b"), nil).status == http.StatusOK }, 30*time.Second, time.Millisecond)

	require.Equal(t, http.StatusOK, one.save("a", first, "text").status)
	require.Equal(t, http.StatusOK, one.save("a", first, "again").status)
	assertError(t, other.save("b", other.lock("b"), "text"), http.StatusInsufficientStorage, "too_many_documents")
	require.Equal(t, http.StatusOK, bob.save("bobs", bob.lock("bobs"), "text").status)
	deleted := one.with(remote.HeaderToken, strconv.FormatInt(first, 10)).do("DELETE", "/api/documents/a", nil)
	require.Equal(t, http.StatusOK, deleted.status)
	assert.Equal(t, http.StatusOK, other.save("b", other.lock("b"), "text").status)
}

// An address may have so many sockets open, of events and rooms together. One that ends makes room for another.
func TestSocketsOfOneAddressHaveABound(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.MaxSockets = 2 })
	const events, rooms = "/api/documents/r/events", "/ws"
	open := func(path string) (*websocket.Conn, int) {
		conn, response, err := websocket.Dial(t.Context(), s.URL+path, nil)
		require.NotNil(t, response, err)
		return conn, response.StatusCode
	}
	first, status := open(events)
	require.Equal(t, http.StatusSwitchingProtocols, status)
	_, status = open(rooms)
	require.Equal(t, http.StatusSwitchingProtocols, status)
	for _, path := range []string{events, rooms} {
		_, status = open(path)
		assert.Equal(t, http.StatusTooManyRequests, status, path)
	}
	require.NoError(t, first.CloseNow())
	require.Eventually(t, func() bool { _, status = open(rooms); return status == http.StatusSwitchingProtocols }, 30*time.Second, time.Millisecond)
}
