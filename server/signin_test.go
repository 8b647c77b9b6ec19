package server_test

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/users/oidc/oidctest"
)

// profile is a browser: it keeps cookies.
type profile struct {
	t    *testing.T
	s    *instance
	jar  http.CookieJar
	last []*http.Cookie // of the last answer
}

func (i *instance) browser(t *testing.T) *profile {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	return &profile{t: t, s: i, jar: jar}
}

func (b *profile) url() *url.URL {
	u, err := url.Parse(b.s.URL)
	require.NoError(b.t, err)
	return u
}

// do sends a request of a page of the server; bearer may be "".
func (b *profile) do(method, path, bearer string) answer {
	b.t.Helper()
	c := b.client(bearer)
	a := c.do(method, path, nil)
	b.last = (&http.Response{Header: a.header}).Cookies()
	b.jar.SetCookies(b.url(), b.last)
	return a
}

// client sends requests with the cookies that the browser has now.
func (b *profile) client(bearer string) client {
	c := b.s.as(b.t, bearer).with("Sec-Fetch-Site", "same-origin")
	var pairs []string
	for _, cookie := range b.jar.Cookies(b.url()) {
		pairs = append(pairs, cookie.Name+"="+cookie.Value)
	}
	if len(pairs) > 0 {
		c = c.with("Cookie", strings.Join(pairs, "; "))
	}
	return c
}

// user returns who the server says has signed in; "" is nobody.
func (b *profile) user() string {
	b.t.Helper()
	a := b.do("GET", "/api/session", "")
	require.Equal(b.t, http.StatusOK, a.status, string(a.text))
	name, _ := a.body["user"].(string)
	assert.Equal(b.t, name != "", a.body["signed_in"])
	return name
}

func TestABrowserSignsInAndOut(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t, "")
	b := s.browser(t)
	assert.Empty(t, b.user())
	assertError(t, b.do("POST", lockOf("r"), ""), http.StatusUnauthorized, "unauthenticated")
	for _, wrong := range []string{"", "eve-key"} {
		assertError(t, b.do("POST", "/api/session", wrong), http.StatusUnauthorized, "unauthenticated")
	}
	assert.Empty(t, b.user())

	in := b.do("POST", "/api/session", "ann-key")
	require.Equal(t, http.StatusOK, in.status, string(in.text))
	assert.Equal(t, "ann", in.body["user"])
	require.NotEmpty(t, b.last)
	for _, cookie := range b.last {
		assert.True(t, cookie.HttpOnly, cookie.Name)
		assert.Equal(t, http.SameSiteLaxMode, cookie.SameSite, cookie.Name)
		assert.NotContains(t, cookie.Value, "ann-key")
	}
	assert.Equal(t, "ann", b.user())
	require.Equal(t, http.StatusOK, b.do("POST", lockOf("r"), "").status)
	require.Equal(t, http.StatusOK, b.do("PUT", lockOf("r"), "").status)
	assert.Equal(t, "ann", s.as(t, "bob-key").do("GET", lockOf("r"), nil).body["holder_name"])

	require.Equal(t, http.StatusOK, b.do("DELETE", "/api/session", "").status)
	assert.Empty(t, b.jar.Cookies(b.url()), "nothing is left in the browser")
	assert.Empty(t, b.user())
	assertError(t, b.do("PUT", lockOf("r"), ""), http.StatusUnauthorized, "unauthenticated")
	require.Equal(t, http.StatusOK, b.do("DELETE", "/api/session", "").status, "signing out twice does no harm")
}

// A browser that signs out leaves no lock to others until its TTL, whatever it holds. A lock of a program of the same user stays.
func TestSigningOutReleasesTheLocks(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t, "")
	b, program := s.browser(t), s.as(t, "ann-key")
	require.Equal(t, http.StatusOK, b.do("POST", "/api/session", "ann-key").status)
	require.Equal(t, http.StatusOK, b.do("POST", lockOf("r"), "").status)
	require.Equal(t, http.StatusOK, b.do("POST", lockOf("s")+"?ticket=t1", "").status)
	require.Equal(t, http.StatusOK, program.do("POST", lockOf("of-a-program"), nil).status)
	require.Equal(t, http.StatusOK, b.do("DELETE", "/api/session", "").status)
	for _, document := range []string{"r", "s"} {
		assert.Equal(t, http.StatusOK, s.as(t, "bob-key").do("POST", lockOf(document), nil).status, document)
	}
	require.Equal(t, http.StatusOK, program.do("DELETE", "/api/session", nil).status)
	require.Equal(t, http.StatusOK, program.do("PUT", lockOf("of-a-program"), nil).status)
}

// A user that signs in inherits no lock: neither from an anonymous session, nor from another user, nor by a session
// that another client has given the browser.
func TestSigningInInheritsNoLock(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t, "anyone * read lock write")
	b := s.browser(t)
	require.Equal(t, http.StatusOK, b.do("POST", lockOf("nobody"), "").status)
	before := b.jar.Cookies(b.url())
	require.Equal(t, http.StatusOK, b.do("POST", "/api/session", "ann-key").status)
	for _, old := range before {
		for _, now := range b.jar.Cookies(b.url()) {
			assert.NotEqual(t, old.Value, now.Value, "the session is new")
		}
	}
	assertError(t, b.do("PUT", lockOf("nobody"), ""), http.StatusNotFound, "lock_not_found")
	require.Equal(t, http.StatusOK, b.do("POST", lockOf("ann"), "").status)

	// The same user again, as when a token is renewed: what she holds stays hers.
	require.Equal(t, http.StatusOK, b.do("POST", "/api/session", "ann-key").status)
	require.Equal(t, http.StatusOK, b.do("PUT", lockOf("ann"), "").status)

	anns := b.jar.Cookies(b.url())
	require.Equal(t, http.StatusOK, b.do("POST", "/api/session", "bob-key").status)
	assert.Equal(t, "bob", b.user())
	assertError(t, b.do("PUT", lockOf("ann"), ""), http.StatusNotFound, "lock_not_found")
	for _, old := range anns {
		for _, now := range b.jar.Cookies(b.url()) {
			assert.NotEqual(t, old.Value, now.Value)
		}
	}
}

// The key or token of a user is checked with each request.
func TestASignInEndsWithItsKeyOrToken(t *testing.T) {
	t.Parallel()
	p := oidctest.New(t)
	keys := writeFile(t, keyLine("ann", ""))
	s := start(t, func(c *server.Config) {
		c.OIDCIssuer, c.OIDCAudience, c.APIKeys = p.Issuer(), "holdfast", keys
	})
	b := s.browser(t)
	require.Equal(t, http.StatusOK, b.do("POST", "/api/session", "ann-key").status)
	require.Equal(t, "ann", b.user())
	require.NoError(t, os.WriteFile(keys, []byte(keyLine("bob", "")), 0o600))
	s.Reload()
	assert.Empty(t, b.user())
	assertError(t, b.do("POST", lockOf("r"), ""), http.StatusUnauthorized, "unauthenticated")

	claims := map[string]any{"iss": p.Issuer(), "sub": "carol", "aud": "holdfast", "exp": time.Now().Add(4 * time.Second).Unix()}
	require.Equal(t, http.StatusOK, b.do("POST", "/api/session", p.Token(claims)).status)
	require.Equal(t, "carol", b.user())
	require.Eventually(t, func() bool { return b.user() == "" }, 30*time.Second, 100*time.Millisecond)

	claims["exp"], claims["padding"] = time.Now().Add(time.Hour).Unix(), strings.Repeat("x", 3000)
	assertError(t, b.do("POST", "/api/session", p.Token(claims)), http.StatusBadRequest, "invalid_request")
	assert.Empty(t, b.user())
}

// Nobody signs a browser in or out from another site, and no cookie that the server has not made names a user.
func TestSignInsAreForgedByNobody(t *testing.T) {
	t.Parallel()
	s, other := startWithUsers(t, ""), startWithUsers(t, "")
	for _, method := range []string{"POST", "DELETE"} {
		foreign := s.as(t, "ann-key").with("Sec-Fetch-Site", "cross-site").with("Origin", "https://evil.example")
		assertError(t, foreign.do(method, "/api/session", nil), http.StatusForbidden, "forbidden_origin")
	}
	b, elsewhere := s.browser(t), other.browser(t)
	require.Equal(t, http.StatusOK, b.do("POST", "/api/session", "ann-key").status)
	require.Equal(t, http.StatusOK, elsewhere.do("POST", "/api/session", "root-key").status)
	for _, cookie := range b.jar.Cookies(b.url()) {
		if !strings.HasPrefix(cookie.Name, "holdfast_user") {
			continue
		}
		var values []string
		for i := range cookie.Value {
			values = append(values, cookie.Value[:i], cookie.Value[:i]+"A"+cookie.Value[i:], cookie.Value[:i]+string(cookie.Value[i]^1)+cookie.Value[i+1:])
		}
		for _, c := range elsewhere.jar.Cookies(elsewhere.url()) {
			assert.NotEqual(t, cookie.Name, c.Name, "two servers on one host use different cookies")
			values = append(values, c.Value)
		}
		for i, value := range values {
			if i%7 == 0 || i >= len(values)-2 {
				seen := s.as(t, "").with("Cookie", cookie.Name+"="+value).do("GET", "/api/session", nil)
				assert.Equal(t, false, seen.body["signed_in"], value)
			}
		}
	}
	secure := start(t, func(c *server.Config) { c.SecureCookie, c.APIKeys = true, writeFile(t, keyLine("ann", "")) }).as(t, "ann-key").do("POST", "/api/session", nil)
	for _, cookie := range (&http.Response{Header: secure.header}).Cookies() {
		assert.True(t, cookie.Secure)
		assert.True(t, strings.HasPrefix(cookie.Name, "__Host-"), cookie.Name)
	}
	anonymous := start(t, nil)
	assert.Equal(t, false, anonymous.browser(t).do("GET", "/api/session", "").body["has_users"])
	assertError(t, anonymous.browser(t).do("POST", "/api/session", "x"), http.StatusUnauthorized, "unauthenticated")
}
