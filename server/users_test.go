package server_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/servertest"
	"github.com/holdfast-dev/holdfast/server/users/oidc/oidctest"
)

// writeFile makes a file of a test.
func writeFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// keyLine is a line of a file of API keys; the key of a user is their name and "-key".
func keyLine(user, groups string) string {
	return fmt.Sprintf("%s sha256:%x %s\n", user, sha256.Sum256([]byte(user+"-key")), groups)
}

// startWithUsers starts a server with the users root, ann (an editor) and bob, and with rules.
func startWithUsers(t testing.TB, rules string) *instance {
	t.Helper()
	return start(t, func(c *server.Config) {
		servertest.Unlimit(c)
		c.APIKeys = writeFile(t, keyLine("root", "")+keyLine("ann", "editors")+keyLine("bob", ""))
		if rules != "" {
			c.Policy = writeFile(t, rules)
		}
	})
}

func TestAnAPIKeyIsAUser(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t, "")
	ann, bob := s.as(t, "ann-key"), s.as(t, "bob-key").named("Ann, I swear")
	require.Equal(t, http.StatusOK, ann.do("POST", lockOf("r"), nil).status)
	denied := bob.do("POST", lockOf("r"), nil)
	assertError(t, denied, http.StatusConflict, "already_locked")
	assert.Equal(t, "ann", denied.body["holder_name"])
	require.Equal(t, http.StatusOK, ann.do("PUT", lockOf("r"), nil).status, "the same key is the same user, from every address")
	require.Equal(t, http.StatusOK, bob.do("POST", lockOf("b"), nil).status)
	assert.Equal(t, "bob", ann.do("GET", lockOf("b"), nil).body["holder_name"], "nobody chooses another name")

	for _, secret := range []string{"", "eve-key", "ann", "ann-key "[:3]} {
		assertError(t, s.as(t, secret).do("GET", lockOf("r"), nil), http.StatusUnauthorized, "unauthenticated")
	}
	// Two programs of one user exclude each other when they name their sessions.
	one, other := ann.with("Holdfast-Session", "one"), ann.with("Holdfast-Session", "other")
	require.Equal(t, http.StatusOK, one.do("POST", lockOf("programs"), nil).status)
	assertError(t, other.do("POST", lockOf("programs"), nil), http.StatusConflict, "already_locked")
	assertError(t, bob.with("Holdfast-Session", "one").do("PUT", lockOf("programs"), nil), http.StatusForbidden, "not_locked_by_user")
	assertError(t, ann.with("Holdfast-Session", strings.Repeat("x", 129)).do("GET", lockOf("r"), nil), http.StatusBadRequest, "invalid_request")
}

// The limit of locks counts for a user whose name is not UTF-8, as a proxy may send it, and for each such user alone.
func TestNamesThatAreNotUTF8AreCounted(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) {
		c.UserHeader, c.TrustedProxies = "X-User", []string{"127.0.0.1"}
		c.Policy = writeFile(t, "signed-in * read lock max-locks=2")
	})
	for _, name := range []string{"Jos\xe9", "Jos\xe8", "José", "100%"} {
		c := s.as(t, "").with("X-User", name)
		for i := range 2 {
			require.Equal(t, http.StatusOK, c.do("POST", lockOf(fmt.Sprintf("%x-%d", name, i)), nil).status)
		}
		c.mayHaveNoMore()
	}
}

// One browser in the hands of two users is two owners.
func TestASessionBelongsToItsUser(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) {
		c.UserHeader, c.GroupsHeader, c.TrustedProxies = "X-User", "X-Groups", []string{"127.0.0.1"}
		c.Policy = writeFile(t, "group:editors * read lock write\nsigned-in * read")
	})
	first := s.as(t, "").with("X-User", "ann").with("X-Groups", "editors").do("GET", lockOf("r"), nil)
	cookie, _, _ := strings.Cut(first.header.Get("Set-Cookie"), ";")
	browser := s.as(t, "").with("Cookie", cookie).with("X-Groups", "editors")
	ann, bob := browser.with("X-User", "ann"), browser.with("X-User", "bob")
	require.Equal(t, http.StatusOK, ann.do("POST", lockOf("r"), nil).status)
	require.Equal(t, http.StatusOK, ann.do("PUT", lockOf("r"), nil).status)
	assertError(t, bob.do("PUT", lockOf("r"), nil), http.StatusForbidden, "not_locked_by_user")
	assertError(t, bob.do("POST", lockOf("r"), nil), http.StatusConflict, "already_locked")
	assertError(t, bob.with("X-Groups", "guests").do("POST", lockOf("b"), nil), http.StatusForbidden, "not_allowed")
	assertError(t, browser.with("X-Groups", "editors").do("PUT", lockOf("r"), nil), http.StatusUnauthorized, "unauthenticated")
}

// A file that has changed counts; a broken one does not, and the rules before stay.
func TestFilesOfUsersAndRulesAreReadAgain(t *testing.T) {
	t.Parallel()
	keys, rules := writeFile(t, keyLine("ann", "")), writeFile(t, "signed-in documents/r read")
	s := start(t, func(c *server.Config) { c.APIKeys, c.Policy = keys, rules })
	ann, bob := s.as(t, "ann-key"), s.as(t, "bob-key")
	require.Equal(t, http.StatusOK, ann.do("GET", lockOf("r"), nil).status)
	assertError(t, ann.do("POST", lockOf("r"), nil), http.StatusForbidden, "not_allowed")

	require.NoError(t, os.WriteFile(keys, []byte(keyLine("bob", "")), 0o600))
	require.NoError(t, os.WriteFile(rules, []byte("signed-in documents/r read lock"), 0o600))
	s.Reload()
	assertError(t, ann.do("GET", lockOf("r"), nil), http.StatusUnauthorized, "unauthenticated")
	require.Equal(t, http.StatusOK, bob.do("POST", lockOf("r"), nil).status)
	require.NoError(t, os.WriteFile(rules, []byte("everybody may"), 0o600))
	s.Reload()
	require.Equal(t, http.StatusOK, bob.do("PUT", lockOf("r"), nil).status)

	// Without a signal it takes some seconds.
	require.NoError(t, os.WriteFile(rules, []byte("# nothing at all"), 0o600))
	require.Eventually(t, func() bool { return bob.do("PUT", lockOf("r"), nil).status == http.StatusForbidden }, 30*time.Second, 100*time.Millisecond)

	for _, broken := range []func(*server.Config){
		func(c *server.Config) { c.Policy = rules + ".none" },
		func(c *server.Config) { c.APIKeys = writeFile(t, "ann key") },
	} {
		c := server.DefaultConfig()
		c.DataDir = t.TempDir()
		broken(&c)
		_, err := server.Start(t.Context(), c, nil)
		assert.ErrorContains(t, err, "cannot be read")
	}
}

// A socket ends when its user may read no longer.
func TestASocketEndsWithThePermission(t *testing.T) {
	t.Parallel()
	rules := writeFile(t, "signed-in documents read lock")
	s := start(t, func(c *server.Config) {
		c.APIKeys, c.Policy, c.Ping = writeFile(t, keyLine("ann", "")+keyLine("bob", "")), rules, time.Second
	})
	_, response, err := websocket.Dial(t.Context(), s.URL+"/api/documents/r/events", nil)
	require.Error(t, err)
	assert.Equal(t, http.StatusUnauthorized, response.StatusCode)
	conn, _, err := websocket.Dial(t.Context(), s.URL+"/api/documents/r/events", &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer bob-key"}}})
	require.NoError(t, err)
	defer conn.CloseNow()
	require.NoError(t, os.WriteFile(rules, []byte("user:ann documents read lock"), 0o600))
	s.Reload()
	require.Equal(t, http.StatusOK, s.as(t, "ann-key").do("POST", lockOf("r"), nil).status)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, text, err := conn.Read(ctx)
	assert.Equal(t, websocket.StatusPolicyViolation, websocket.CloseStatus(err), string(text))
}

// The sockets of a key end when the key is removed, or when its user gets other groups.
func TestASocketEndsWithItsKey(t *testing.T) {
	t.Parallel()
	for _, others := range []string{"", keyLine("bob", "readers")} {
		keys := writeFile(t, keyLine("ann", "")+keyLine("bob", ""))
		s := start(t, func(c *server.Config) {
			c.APIKeys, c.Policy = keys, writeFile(t, "anyone documents read lock\nanyone rooms read write")
		})
		dial := func(path, key string) *websocket.Conn {
			conn, _, err := websocket.Dial(t.Context(), s.URL+path, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + key}}})
			require.NoError(t, err)
			t.Cleanup(func() { _ = conn.CloseNow() })
			return conn
		}
		events, ann, bob := dial("/api/documents/r/events", "bob-key"), &visitor{t: t, conn: dial("/ws", "ann-key")}, &visitor{t: t, conn: dial("/ws", "bob-key")}
		for _, v := range []*visitor{ann, bob} {
			v.token = v.next("connected")["userToken"]
			v.send(object{"type": "enterTheRoom", "userName": "X", "roomId": "r", "create": true})
			v.next("roomInfo")
		}
		require.NoError(t, os.WriteFile(keys, []byte(keyLine("ann", "")+others), 0o600))
		s.Reload()
		require.Equal(t, http.StatusOK, s.as(t, "ann-key").do("POST", lockOf("r"), nil).status)
		ann.send(object{"type": "answer", "roomId": "r", "answer": "a secret"})
		for _, conn := range []*websocket.Conn{events, bob.conn} {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			_, text, err := conn.Read(ctx)
			cancel()
			assert.Equal(t, websocket.StatusPolicyViolation, websocket.CloseStatus(err), string(text))
		}
	}
}

// A page can name its user in a WebSocket by a subprotocol alone.
func TestASocketNamesItsUserByASubprotocol(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t, "user:ann * read\nuser:ann rooms read write")
	dial := func(path, bearer string) (status int, subprotocol string) { // what the server answers
		conn, response, err := websocket.Dial(t.Context(), s.URL+path, &websocket.DialOptions{Subprotocols: []string{"holdfast", bearer}})
		if err == nil {
			subprotocol = conn.Subprotocol()
			require.NoError(t, conn.CloseNow())
		}
		if response.Body != nil {
			require.NoError(t, response.Body.Close())
		}
		return response.StatusCode, subprotocol
	}
	bearer := func(key string) string { return "holdfast.bearer." + base64.RawURLEncoding.EncodeToString([]byte(key)) }
	for _, path := range []string{"/api/documents/r/events", "/ws"} {
		status, subprotocol := dial(path, bearer("ann-key"))
		require.Equal(t, http.StatusSwitchingProtocols, status, path)
		assert.Equal(t, "holdfast", subprotocol, "the answer does not repeat the key")
		for _, wrong := range []string{bearer("eve-key"), "holdfast.bearer.", "holdfast.bearer.=", bearer(strings.Repeat("x", 8193))} {
			status, _ = dial(path, wrong)
			assert.Equal(t, http.StatusUnauthorized, status, "%s %.40s", path, wrong)
		}
	}
	status, _ := dial("/api/documents/r/events", bearer("bob-key"))
	assert.Equal(t, http.StatusForbidden, status)
	// It counts in no other request.
	plain := s.as(t, "").with("Sec-WebSocket-Protocol", "holdfast, "+bearer("ann-key")).do("GET", lockOf("r"), nil)
	assertError(t, plain, http.StatusUnauthorized, "unauthenticated")
}

// A token of the provider names its user until it expires, and its sockets end then.
func TestAnOIDCTokenIsAUser(t *testing.T) {
	t.Parallel()
	p := oidctest.New(t)
	s := start(t, func(c *server.Config) {
		c.OIDCIssuer, c.OIDCAudience, c.OIDCName, c.Ping = p.Issuer(), "holdfast", "email", time.Second
		c.APIKeys, c.Policy = writeFile(t, keyLine("ci", "")), writeFile(t, "group:editors * read lock write\nsigned-in * read")
	})
	token := func(life time.Duration, groups ...string) string {
		return p.Token(map[string]any{"iss": p.Issuer(), "sub": "1234", "email": "ann@example.com", "aud": []string{"holdfast", "x"},
			"exp": time.Now().Add(life).Unix(), "groups": groups})
	}
	ann := s.as(t, token(time.Hour, "editors"))
	require.Equal(t, http.StatusOK, ann.do("POST", lockOf("r"), nil).status)
	renewed := s.as(t, token(2*time.Hour, "editors"))
	require.Equal(t, http.StatusOK, renewed.do("PUT", lockOf("r"), nil).status, "the same owner with a new token")
	seen := s.as(t, "ci-key").do("GET", lockOf("r"), nil)
	assert.Equal(t, "ann@example.com", seen.body["holder_name"])
	assertError(t, s.as(t, token(time.Hour)).do("POST", lockOf("other"), nil), http.StatusForbidden, "not_allowed")
	assertError(t, s.as(t, token(-time.Minute, "editors")).do("GET", lockOf("r"), nil), http.StatusUnauthorized, "unauthenticated")
	assertError(t, s.as(t, "eve").do("GET", lockOf("r"), nil), http.StatusUnauthorized, "unauthenticated")

	conn, _, err := websocket.Dial(t.Context(), s.URL+"/api/documents/r/events", &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer " + token(3*time.Second, "editors")}}})
	require.NoError(t, err)
	defer conn.CloseNow()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for err == nil { // the event of Ann's lock may arrive first
		_, _, err = conn.Read(ctx)
	}
	assert.Equal(t, websocket.StatusPolicyViolation, websocket.CloseStatus(err), err)
}

// The rules change, or a key is removed, while its user waits in line. The lock then goes to nobody who may not have it.
func TestWaiterThatMayNotLockAnyMoreGetsNoLock(t *testing.T) {
	t.Parallel()
	const rules = "signed-in * read lock write\n"
	others := keyLine("ann", "") + keyLine("root", "")
	for code, now := range map[string]struct {
		rules, keys string
		status      int
	}{
		"not_allowed":     {"user:bob * read\n" + rules, others + keyLine("bob", ""), http.StatusForbidden},
		"unauthenticated": {rules, others, http.StatusUnauthorized},
	} {
		for call, body := range map[string]any{"?wait_ms=60000": nil, "/ask": map[string]any{"grace_ms": 60000}} {
			t.Run(code+call, func(t *testing.T) {
				t.Parallel()
				c := servertest.Unlimited(t)
				c.APIKeys, c.Policy = writeFile(t, others+keyLine("bob", "")), writeFile(t, rules)
				s := startWith(t, c)
				ann, bob := s.as(t, "ann-key"), s.as(t, "bob-key")
				ann.lock("r")
				answers := make(chan answer, 1)
				go func() {
					a, err := bob.try(t.Context(), "POST", lockOf("r")+call, body)
					assert.NoError(t, err)
					answers <- a
				}()
				ann.seesWaiting("documents/r", 1)
				require.NoError(t, os.WriteFile(c.APIKeys, []byte(now.keys), 0o600))
				require.NoError(t, os.WriteFile(c.Policy, []byte(now.rules), 0o600))
				s.Reload()
				require.Equal(t, http.StatusOK, ann.do("DELETE", lockOf("r"), nil).status)
				assertError(t, <-answers, now.status, code)
				assert.Equal(t, false, s.as(t, "root-key").do("GET", lockOf("r"), nil).body["is_locked"])
			})
		}
	}
}
