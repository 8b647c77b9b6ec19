package server_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

func TestABrowserGetsASession(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	first := s.as(t, "").do("POST", lockOf("r"), nil)
	require.Equal(t, http.StatusOK, first.status)
	cookie := first.header.Get("Set-Cookie")
	assert.Contains(t, cookie, "HttpOnly")
	assert.Contains(t, cookie, "SameSite=Lax")
	require.True(t, strings.HasPrefix(cookie, sessions.CookieName+"_"), cookie)
	_, secret, _ := strings.Cut(cookie, "=")
	secret, _, _ = strings.Cut(secret, ".")
	assert.NotContains(t, string(first.text), secret)

	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser := &http.Client{Jar: jar}
	for i := range 2 {
		response, err := browser.Post(s.URL+lockOf("own"), "application/json", nil)
		require.NoError(t, err)
		response.Body.Close()
		assert.Equal(t, http.StatusOK, response.StatusCode)
		assert.Equal(t, i == 0, response.Header.Get("Set-Cookie") != "", "only the first answer sets a cookie")
	}
	other := s.as(t, "").do("POST", lockOf("own"), nil)
	assertError(t, other, http.StatusConflict, "already_locked")
	assert.NotEmpty(t, other.body["holder_name"])

	// A cookie that the server cannot have made is no session.
	forged := s.as(t, "").with("Cookie", sessions.CookieName+"=guess").do("GET", lockOf("r"), nil)
	assert.NotEmpty(t, forged.header.Get("Set-Cookie"))
	secure := start(t, func(c *server.Config) { c.SecureCookie = true }).as(t, "").do("GET", lockOf("r"), nil)
	assert.Contains(t, secure.header.Get("Set-Cookie"), "Secure")
}

func TestWrongAuthorization(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, header := range []string{"Bearer", "Bearer ", "Basic abc", "x", "Bearer " + strings.Repeat("x", 513)} {
		assertError(t, s.as(t, "").with("Authorization", header).do("GET", lockOf("r"), nil), http.StatusUnauthorized, "unauthorized")
	}
}

func TestATrustedProxyGivesTheName(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.UserHeader, c.TrustedProxies = "X-User", []string{"127.0.0.1"} })
	s.as(t, "ann").with("X-User", "Ann Example").do("POST", lockOf("r"), object{"holder_name": "somebody else"})
	assert.Equal(t, "Ann Example", s.as(t, "bob").with("X-User", "Bob").do("GET", lockOf("r"), nil).body["holder_name"])
	assertError(t, s.as(t, "bob").do("GET", lockOf("r"), nil), http.StatusUnauthorized, "unauthenticated")
	plain := start(t, nil)
	plain.as(t, "ann").with("X-User", "Ann Example").do("POST", lockOf("r"), object{"holder_name": "Ann"})
	assert.Equal(t, "Ann", plain.as(t, "bob").do("GET", lockOf("r"), nil).body["holder_name"])
}

// The header that names a user is an error, unless a trusted proxy sends it, once.
func TestNobodyElseGivesTheName(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.UserHeader, c.TrustedProxies = "X-User", []string{"10.0.0.0/8"} })
	ann := s.as(t, "ann").with("X-Forwarded-For", "10.0.0.1")
	assertError(t, ann.with("X-User", "Bob").do("POST", lockOf("r"), nil), http.StatusBadRequest, "invalid_request")
	assertError(t, ann.with("X-User", "").do("POST", lockOf("r"), nil), http.StatusBadRequest, "invalid_request")
	assertError(t, ann.do("POST", lockOf("r"), nil), http.StatusUnauthorized, "unauthenticated")

	s = start(t, func(c *server.Config) { c.UserHeader, c.TrustedProxies = "X-User", []string{"127.0.0.1"} })
	twice := s.as(t, "ann").with("X-User", "Bob")
	twice.header.Add("X-User", "Ann")
	assertError(t, twice.do("POST", lockOf("r"), nil), http.StatusBadRequest, "invalid_request")
}

// A user has one allowance in all sessions, however many secrets.
func TestAUserHasOneAllowance(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) {
		c.UserHeader, c.TrustedProxies, c.UserRate, c.UserBurst = "X-User", []string{"127.0.0.1"}, 0.001, 4
	})
	passed := 0
	for i := range 10 {
		if s.as(t, fmt.Sprint("secret-", i)).with("X-User", "Ann").do("GET", lockOf("r"), nil).status == http.StatusOK {
			passed++
		}
	}
	assert.Equal(t, 4, passed)
	assert.Equal(t, http.StatusOK, s.as(t, "secret-1").with("X-User", "Bob").do("GET", lockOf("r"), nil).status)

	const large = "/api/documents?limit=1000" // takes the rest of the allowance
	assert.Equal(t, http.StatusOK, s.as(t, "secret-1").with("X-User", "Cleo").do("GET", large, nil).status)
	assertError(t, s.as(t, "secret-2").with("X-User", "Cleo").do("GET", lockOf("r"), nil), http.StatusTooManyRequests, "rate_limited")
}

func TestTooManyRequests(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.Rate, c.Burst, c.NewRate, c.NewBurst = 0.001, 10, 0.001, 3 })
	limited := 0
	for range 15 {
		if a := s.as(t, "ann").do("GET", lockOf("r"), nil); a.status == http.StatusTooManyRequests {
			assertError(t, a, http.StatusTooManyRequests, "rate_limited")
			assert.NotEmpty(t, a.header.Get("Retry-After"))
			limited++
		}
	}
	assert.Positive(t, limited)
	assert.Equal(t, http.StatusOK, s.as(t, "bob").do("GET", lockOf("r"), nil).status, "each session by itself")
	limited = 0
	for range 6 {
		if s.as(t, "").do("GET", lockOf("r"), nil).status == http.StatusTooManyRequests {
			limited++
		}
	}
	assert.Positive(t, limited, "clients that keep no session are counted by address")
}

// A browser with many cookies gives up an acquisition under each of its ids, which counts as so many requests.
func TestManyCookiesBringNoAllowance(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.Rate, c.Burst = 0.001, 100 })
	var cookies []string
	for range 40 {
		made := s.as(t, "").do("GET", lockOf("r"), nil).header.Get("Set-Cookie")
		cookies = append(cookies, strings.Split(made, ";")[0])
	}
	passed := 0
	for range 10 {
		if s.as(t, "").with("Cookie", strings.Join(cookies, "; ")).do("DELETE", "/api/locks?ticket=x", nil).status == http.StatusOK {
			passed++
		}
	}
	assert.Equal(t, 2, passed)
}

func TestRequestsOfOtherOriginsAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.Origins = []string{"https://trusted.example"} })
	for origin, status := range map[string]int{
		s.URL: http.StatusOK, "https://trusted.example": http.StatusOK, "https://evil.example": http.StatusForbidden,
	} {
		a := s.as(t, "ann").with("Origin", origin).with("Sec-Fetch-Site", "cross-site").do("POST", lockOf("r"), nil)
		if origin == s.URL {
			a = s.as(t, "ann").with("Origin", origin).with("Sec-Fetch-Site", "same-origin").do("POST", lockOf("r"), nil)
		}
		assert.Equal(t, status, a.status, "%s: %s", origin, a.text)
	}
}

func TestHealthAndMetrics(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	assert.Equal(t, http.StatusOK, ann.do("GET", "/healthz", nil).status)
	assert.Equal(t, http.StatusOK, ann.do("GET", "/readyz", nil).status)
	ann.lock("r")
	s.as(t, "bob").do("POST", lockOf("r"), nil)
	ann.do("PUT", lockOf("r"), nil)
	ann.save("r", 1, "x")
	metrics := string(ann.do("GET", "/metrics", nil).text)
	for _, line := range []string{
		"holdfast_grants_total 1", "holdfast_conflicts_total 1", "holdfast_renewals_total 1",
		"holdfast_fence_rejections_total 1", "holdfast_expiries_total 0", "holdfast_waiters 0", "holdfast_sockets 0",
		"holdfast_watch_lag_seconds_count",
	} {
		assert.Contains(t, metrics, line)
	}
	other := s.another(t, nil)
	require.NoError(t, s.Store().Close())
	assert.Equal(t, http.StatusServiceUnavailable, other.as(t, "ann").do("GET", "/readyz", nil).status)
	assert.Equal(t, http.StatusOK, other.as(t, "ann").do("GET", "/healthz", nil).status)
	assertError(t, other.as(t, "ann").do("POST", lockOf("r"), nil), http.StatusServiceUnavailable, "unavailable")
}

func TestConfigsThatCannotWork(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*server.Config){
		"no time to live":      func(c *server.Config) { c.LockTTL = 0 },
		"no burst":             func(c *server.Config) { c.Burst = 0 },
		"peers of an external": func(c *server.Config) { c.Etcd = []string{"x:1"}; c.PeerURL, c.Blobs = "http://127.0.0.1:1", "x" },
		"an external store and contents of one's own": func(c *server.Config) { c.Etcd = []string{"x:1"} },
		"a user's name from anywhere":                 func(c *server.Config) { c.UserHeader = "X-User" },
		"no generation":                               func(c *server.Config) { c.Keep = 0 },
		"join without a place":                        func(c *server.Config) { c.Join = []string{"http://127.0.0.1:1"} },
		"an address, not a URL":                       func(c *server.Config) { c.PeerURL = "127.0.0.1:1" },
		"an origin with a path":                       func(c *server.Config) { c.Origins = []string{"https://a.example/path"} },
	} {
		c := server.DefaultConfig()
		c.DataDir = t.TempDir()
		change(&c)
		_, err := server.Start(t.Context(), c, nil)
		assert.Error(t, err, name)
	}
}

// A client that sends slower than it may is cut off, and nobody else notices.
func TestSlowClientsAreCutOff(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	slow := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 200 * time.Millisecond, ReadTimeout: 300 * time.Millisecond}
	go func() { _ = slow.Serve(l) }()
	t.Cleanup(func() { _ = slow.Close() })
	for name, text := range map[string]string{
		"header": "POST /api/locks HTTP/1.1\r\nHost: x\r\n",
		"body":   "POST /api/locks HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
	} {
		conn, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		_, err = conn.Write([]byte(text))
		require.NoError(t, err)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
		answer, err := io.ReadAll(conn)
		assert.NoError(t, err, name)
		assert.NotContains(t, string(answer), "200 OK", name)
		_ = conn.Close()
	}
}
