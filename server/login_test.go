package server_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/users/oidc/oidctest"
)

// webBrowser follows redirects as a browser does.
func webBrowser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	return &http.Client{Jar: jar}
}

// browse returns where a browser ends up, the status there and the text.
func browse(t *testing.T, browser *http.Client, address string) (at *url.URL, status int, text string) {
	t.Helper()
	response, err := browser.Get(address)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.Request.URL, response.StatusCode, string(body)
}

func TestABrowserSignsInAtTheProvider(t *testing.T) {
	t.Parallel()
	p := oidctest.New(t)
	s := start(t, func(c *server.Config) {
		c.OIDCIssuer, c.OIDCAudience, c.OIDCName, c.OIDCSecret = p.Issuer(), "holdfast", "email", writeFile(t, "hush\n")
	})
	claims := map[string]any{"iss": p.Issuer(), "sub": "1", "email": "ann@example.com", "aud": "holdfast", "exp": time.Now().Add(time.Hour).Unix()}
	who := func(browser *http.Client) string {
		_, _, text := browse(t, browser, s.URL+"/api/session")
		return text
	}
	p.SignIn(claims, "hush")
	browser := webBrowser(t)
	at, _, _ := browse(t, browser, s.URL+"/api/session/login?return=/api/documents%3Fprefix=x")
	assert.Equal(t, "/api/documents?prefix=x", at.RequestURI())
	assert.Contains(t, who(browser), `"user":"ann@example.com"`)
	assert.Contains(t, who(browser), `"has_provider":true`)

	// No link leads to another site.
	for _, foreign := range []string{"//evil.example", "https://evil.example", `/\evil.example`, "/%09/evil.example", "evil"} {
		at, _, _ := browse(t, webBrowser(t), s.URL+"/api/session/login?return="+url.QueryEscape(foreign))
		assert.Equal(t, s.URL, at.Scheme+"://"+at.Host, foreign)
	}
	// The provider refuses, knows another secret, or gives a token for another sign-in or audience.
	for name, change := range map[string]func(){
		"denied":         func() { p.SignIn(nil, "hush") },
		"another secret": func() { p.SignIn(claims, "other") },
		"another nonce":  func() { p.SignIn(with(claims, "nonce", "x"), "hush") },
		"another client": func() { p.SignIn(with(claims, "aud", "x"), "hush") },
		"expired":        func() { p.SignIn(with(claims, "exp", time.Now().Add(-time.Hour).Unix()), "hush") },
	} {
		change()
		browser := webBrowser(t)
		_, status, text := browse(t, browser, s.URL+"/api/session/login")
		assert.Equal(t, http.StatusUnauthorized, status, name+text)
		assert.Contains(t, who(browser), `"signed_in":false`, name)
	}
	p.SignIn(claims, "hush")
	// A code of one browser signs no other one in, and none twice.
	stays, callback := signInUntilCallback(t, s.URL)
	other := webBrowser(t)
	_, status, _ := browse(t, other, callback)
	assert.Equal(t, http.StatusUnauthorized, status)
	_, _, _ = browse(t, other, s.URL+"/api/session/login") // a sign-in of its own
	_, status, _ = browse(t, other, callback)
	assert.Equal(t, http.StatusUnauthorized, status)
	browse(t, stays, callback)
	assert.Contains(t, who(stays), "ann@example.com")
	_, status, _ = browse(t, stays, callback)
	assert.Equal(t, http.StatusUnauthorized, status)
}

func with(claims map[string]any, name string, value any) map[string]any {
	changed := map[string]any{name: value}
	for other, v := range claims {
		if other != name {
			changed[other] = v
		}
	}
	return changed
}

// signInUntilCallback begins a sign-in. It returns the browser, which has not opened the address of its callback yet.
func signInUntilCallback(t *testing.T, server string) (browser *http.Client, callback string) {
	t.Helper()
	browser = webBrowser(t)
	browser.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if strings.HasSuffix(r.URL.Path, "/callback") {
			return http.ErrUseLastResponse
		}
		return nil
	}
	response, err := browser.Get(server + "/api/session/login")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	callback = response.Header.Get("Location")
	require.Contains(t, callback, "code=")
	return browser, callback
}

// Link previews and proxies send HEAD. Such a request begins no sign-in and uses none up.
func TestHeadKeepsTheSignIn(t *testing.T) {
	t.Parallel()
	p := oidctest.New(t)
	s := start(t, func(c *server.Config) {
		c.OIDCIssuer, c.OIDCAudience, c.OIDCSecret = p.Issuer(), "holdfast", writeFile(t, "hush\n")
	})
	p.SignIn(map[string]any{"iss": p.Issuer(), "sub": "ann", "aud": "holdfast", "exp": time.Now().Add(time.Hour).Unix()}, "hush")
	browser, callback := signInUntilCallback(t, s.URL)
	for _, address := range []string{s.URL + "/api/session/login", callback} {
		response, err := browser.Head(address)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, http.StatusMethodNotAllowed, response.StatusCode, address)
		assert.Equal(t, "GET", response.Header.Get("Allow"), address)
		assert.Empty(t, response.Cookies(), address)
	}
	browse(t, browser, callback)
	_, _, text := browse(t, browser, s.URL+"/api/session")
	assert.Contains(t, text, `"user":"ann"`)
}

// The provider is slow, and a client ends the same sign-in again and again. Each time is a connection to the provider, which is an open file.
func TestManySignInsAreFewRequestsToTheProvider(t *testing.T) {
	t.Parallel()
	const requests, most = 100, 32
	statuses, peak := signInsAtOnce(t, requests, most, time.Second) // further ones would come meanwhile
	assert.Equal(t, map[int]int{http.StatusSeeOther: 1, http.StatusUnauthorized: requests - 1}, statuses, "a code counts once")
	assert.EqualValues(t, most, peak, "requests at once")
}

// The users behind one address sign in at once, and the provider takes long. Nobody waits in vain for the others.
func TestUsersOfOneAddressSignInAtOnce(t *testing.T) {
	t.Parallel()
	const users = 30
	statuses, _ := signInsAtOnce(t, users, users, 0)
	assert.Zero(t, statuses[http.StatusTooManyRequests])
}

// signInsAtOnce sends so many ends of a sign-in at once. The provider has enough of them before it answers to the first one, and then waits for a
// time. If a server sends it fewer, it answers after a while. signInsAtOnce returns how many responses had which status, and the maximum number of
// requests that the provider had at once.
func signInsAtOnce(t *testing.T, requests, enough int, pause time.Duration) (statuses map[int]int, peak int64) {
	t.Helper()
	p := oidctest.New(t)
	s := start(t, func(c *server.Config) {
		c.OIDCIssuer, c.OIDCAudience, c.OIDCSecret = p.Issuer(), "holdfast", writeFile(t, "hush\n")
	})
	p.SignIn(map[string]any{"iss": p.Issuer(), "sub": "ann", "aud": "holdfast", "exp": time.Now().Add(time.Hour).Unix()}, "hush")
	browser, callback := signInUntilCallback(t, s.URL)
	var mu sync.Mutex
	var open int64
	goOn := make(chan struct{})
	end := sync.OnceFunc(func() { close(goOn) })
	time.AfterFunc(30*time.Second, end)
	p.Delay(func() {
		mu.Lock()
		open++
		peak = max(peak, open)
		if open == int64(enough) {
			time.AfterFunc(pause, end)
		}
		mu.Unlock()
		<-goOn
		mu.Lock()
		open--
		mu.Unlock()
	})
	at, err := url.Parse(s.URL)
	require.NoError(t, err)
	kept := browser.Jar.Cookies(at)
	responses := make(chan int)
	for range requests {
		go func() { responses <- statusOf(t, callback, kept) }()
	}
	statuses = map[int]int{}
	for range requests {
		statuses[<-responses]++
	}
	mu.Lock()
	defer mu.Unlock()
	return statuses, peak
}

// statusOf is the status of the response to a GET with cookies.
func statusOf(t *testing.T, address string, cookies []*http.Cookie) int {
	request, err := http.NewRequestWithContext(t.Context(), "GET", address, nil)
	assert.NoError(t, err)
	for _, c := range cookies {
		request.AddCookie(c)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if !assert.NoError(t, err) {
		return 0
	}
	assert.NoError(t, response.Body.Close())
	return response.StatusCode
}

func TestAServerWithoutAProvider(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t, "")
	for _, path := range []string{"/api/session/login", "/api/session/callback?code=x&state=y"} {
		assertError(t, s.as(t, "").do("GET", path, nil), http.StatusNotFound, "not_found")
	}
}
