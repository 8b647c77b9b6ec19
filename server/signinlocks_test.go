package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/users/oidc/oidctest"
)

const anybody = "anyone * read lock write"

// lockPlace locks a place in a document, which only its lease id can release.
func (b *profile) lockPlace(path string, bearer string) {
	b.t.Helper()
	c := b.client(bearer)
	require.Equal(b.t, http.StatusOK, c.do("POST", "/api/locks", object{"paths": [][]string{strings.Split(path, "/")}}).status)
}

// A browser that signs in is another owner from then on, so nobody could renew or release what it held before.
func TestSigningInReleasesTheLocksBefore(t *testing.T) {
	t.Parallel()
	for before, bearer := range map[string]string{"nobody": "", "another user": "bob-key", "the same user without a cookie": "ann-key"} {
		t.Run(before, func(t *testing.T) {
			t.Parallel()
			s := startWithUsers(t, anybody)
			b, other, program := s.browser(t), s.as(t, "root-key"), s.as(t, "ann-key")
			b.user()
			if before == "another user" {
				require.Equal(t, http.StatusOK, b.do("POST", "/api/session", bearer).status)
				bearer = ""
			}
			require.Equal(t, http.StatusOK, b.do("POST", lockOf("r"), bearer).status)
			b.lockPlace("documents/s/part", bearer)
			require.Equal(t, http.StatusOK, program.do("POST", lockOf("of-a-program"), nil).status)
			require.Equal(t, http.StatusOK, b.do("POST", "/api/session", "ann-key").status)
			require.Equal(t, "ann", b.user())
			for _, document := range []string{"r", "s"} {
				assert.Equal(t, http.StatusOK, other.do("POST", lockOf(document), nil).status, document)
			}
			require.Equal(t, http.StatusOK, program.do("PUT", lockOf("of-a-program"), nil).status)
		})
	}
}

// A tab waits for a lock while another tab signs in. The tab would get the lock under the former session.
func TestSigningInEndsTheWaitBefore(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t, anybody)
	b, holder, other := s.browser(t), s.as(t, "bob-key"), s.as(t, "root-key")
	b.user()
	holder.lock("r")
	waits := b.client("")
	waited := make(chan answer, 1)
	go func() {
		a, err := waits.try(t.Context(), "POST", lockOf("r")+"?wait_ms=60000&ticket=t1", nil)
		assert.NoError(t, err)
		waited <- a
	}()
	other.seesWaiting("documents/r", 1)
	require.Equal(t, http.StatusOK, b.do("POST", "/api/session", "ann-key").status)
	assertError(t, <-waited, http.StatusConflict, "given_up")
	holder.do("DELETE", lockOf("r"), nil)
	assert.Equal(t, http.StatusOK, other.do("POST", lockOf("r"), nil).status)
}

func TestSigningInAtTheProviderReleasesTheLocksBefore(t *testing.T) {
	t.Parallel()
	p := oidctest.New(t)
	s := start(t, func(c *server.Config) {
		c.OIDCIssuer, c.OIDCAudience, c.OIDCSecret, c.APIKeys = p.Issuer(), "holdfast", writeFile(t, "hush\n"), writeFile(t, keyLine("bob", ""))
		c.Policy = writeFile(t, anybody)
	})
	browser := webBrowser(t)
	post := func(path, body string) {
		response, err := browser.Post(s.URL+path, "application/json", strings.NewReader(body))
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode, path)
	}
	bob := s.as(t, "bob-key")
	for _, user := range []string{"ann", "carol"} { // from nobody to Ann, and from her to another user
		post(lockOf("r"), "")
		post("/api/locks", `{"paths": [["documents", "s", "part"]]}`)
		assertError(t, bob.do("POST", lockOf("r"), nil), http.StatusConflict, "already_locked")
		p.SignIn(map[string]any{"iss": p.Issuer(), "sub": user, "aud": "holdfast", "exp": time.Now().Add(time.Hour).Unix()}, "hush")
		browse(t, browser, s.URL+"/api/session/login?return="+url.QueryEscape("/api/session"))
		_, _, text := browse(t, browser, s.URL+"/api/session")
		require.Contains(t, text, `"user":"`+user+`"`)
		for _, document := range []string{"r", "s"} {
			require.Equal(t, http.StatusOK, bob.do("POST", lockOf(document), nil).status, "%s before %s", document, user)
			require.Equal(t, http.StatusOK, bob.do("DELETE", lockOf(document), nil).status)
		}
	}
}

// A page of another origin of the site uses the same cookies, and another owner.
func TestSigningInReleasesTheLocksOfOtherOrigins(t *testing.T) {
	t.Parallel()
	const origin = "https://editor.example"
	s := start(t, func(c *server.Config) {
		c.APIKeys, c.Policy, c.Origins = writeFile(t, keyLine("ann", "")+keyLine("bob", "")), writeFile(t, anybody), []string{origin}
	})
	b := s.browser(t)
	b.user()
	elsewhere := b.client("").with("Sec-Fetch-Site", "same-site").with("Origin", origin)
	require.Equal(t, http.StatusOK, elsewhere.do("POST", lockOf("r"), nil).status)
	require.Equal(t, http.StatusOK, b.do("POST", lockOf("s"), "").status)
	require.Equal(t, http.StatusOK, b.do("POST", "/api/session", "ann-key").status)
	for _, document := range []string{"r", "s"} {
		assert.Equal(t, http.StatusOK, s.as(t, "bob-key").do("POST", lockOf(document), nil).status, document)
	}
}
