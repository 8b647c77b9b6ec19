package server_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server"
)

// The password is an API key. A browser's cookie is nothing here, and no page of another site changes anything.
func TestDesktopProgramsSignIn(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t, secretRules)
	anybody := s.as(t, "")
	anybody.with("Depth", "1").status(http.StatusMultiStatus, "PROPFIND /dav/") // the root is there, and empty for nobody
	refused := anybody.do("GET", "/dav/r", nil)
	assert.Equal(t, http.StatusUnauthorized, refused.status)
	assert.Contains(t, refused.header.Get("WWW-Authenticate"), "Basic realm=")
	anybody.status(http.StatusOK, "OPTIONS /dav/", "OPTIONS /dav")
	basic := func(password string) client { return anybody.with("Authorization", basicAuth("whoever", password)) }
	wrong := basic("wrong").do("OPTIONS", "/dav/", nil)
	assert.Equal(t, http.StatusUnauthorized, wrong.status)
	assert.NotEmpty(t, wrong.header.Get("WWW-Authenticate"))

	basic("ann-key").status(http.StatusCreated, "PUT /dav/r text")
	token := basic("ann-key").davLock("/dav/r", "exclusive", "0")
	assert.Equal(t, "ann", s.as(t, "root-key").do("GET", lockOf("r"), nil).body["holder_name"])
	basic("bob-key").status(http.StatusForbidden, "PUT /dav/r no", "DELETE /dav/r", "MKCOL /dav/c")
	basic("bob-key").with("Lock-Token", "<"+token+">").status(http.StatusForbidden, "UNLOCK /dav/r")
	assert.NotContains(t, string(basic("bob-key").with("Depth", "0").do("PROPFIND", "/dav/r", nil).text), token)

	signedIn := s.as(t, "ann-key").with("Sec-Fetch-Site", "same-origin").do("POST", "/api/session", nil)
	require.Equal(t, http.StatusOK, signedIn.status, string(signedIn.text))
	var cookies []string
	for _, c := range signedIn.header.Values("Set-Cookie") {
		cookies = append(cookies, strings.Split(c, ";")[0])
	}
	browser := anybody.with("Cookie", strings.Join(cookies, "; "))
	require.Equal(t, http.StatusOK, browser.do("GET", contentOf("r"), nil).status)
	browser.status(http.StatusUnauthorized, "GET /dav/r", "PUT /dav/r no")
	basic("ann-key").with("Origin", "https://evil.example").status(http.StatusForbidden, "PUT /dav/r no", "PROPFIND /dav/r")
	assert.Empty(t, browser.do("GET", "/dav/r", nil).header.Get("Set-Cookie"))
}

// On a server without users, a program without a password has locked a file. A program elsewhere sends the address of the first one as its
// password. It neither sees the token of the lock nor changes anything under it.
func TestAPasswordIsNoAddress(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.TrustedProxies = []string{"127.0.0.0/8"} })
	ann := s.as(t, "").with("X-Forwarded-For", "192.0.2.1")
	ann.status(http.StatusCreated, "PUT /dav/r text")
	token := ann.davLock("/dav/r", "exclusive", "0")
	elsewhere := s.as(t, "").with("X-Forwarded-For", "192.0.2.2")
	for _, eve := range []client{elsewhere.with("Authorization", basicAuth("eve", "192.0.2.1")), elsewhere.with("Authorization", "Bearer 192.0.2.1")} {
		assert.NotContains(t, string(eve.with("Depth", "0").do("PROPFIND", "/dav/r", nil).text), token)
		eve.under(token).status(http.StatusPreconditionFailed, "PUT /dav/r other")
		eve.with("Lock-Token", "<"+token+">").status(http.StatusForbidden, "UNLOCK /dav/r")
	}
	ann.under(token).status(http.StatusNoContent, "PUT /dav/r mine")
	assert.Equal(t, "mine", string(ann.do("GET", "/dav/r", nil).text))
}

// A file that one may not read is like one that does not exist.
func TestAHiddenFileIsLikeNone(t *testing.T) {
	t.Parallel()
	hidden, none := startWithUsers(t, secretRules), startWithUsers(t, secretRules)
	root := hidden.as(t, "root-key")
	root.status(http.StatusCreated, "PUT /dav/secret text", "MKCOL /dav/a", "MKCOL /dav/a/secret", "PUT /dav/a/secret/x text")
	for _, s := range []*instance{hidden, none} {
		s.as(t, "ann-key").status(http.StatusCreated, "PUT /dav/open text")
	}
	token := root.davLock("/dav/secret", "exclusive", "0")
	lock := "LOCK %s " + fmt.Sprintf(lockInfo, "exclusive")
	for _, path := range []string{"/dav/secret", "/dav/a/secret", "/dav/a/secret/x", "/dav/secret/y"} {
		for _, request := range []string{"GET %s", "PUT %s x", "DELETE %s", "MKCOL %s", "PROPFIND %s", "PROPPATCH %s " + setProperty, lock, "UNLOCK %s",
			"COPY %s", "MOVE %s", "COPY /dav/open %s", "MOVE /dav/open %s", "GET /dav/open %s"} {
			for _, who := range []string{"ann-key", "bob-key"} {
				var got []string
				for _, s := range []*instance{hidden, none} {
					c := s.as(t, who).with("Depth", "0").with("Lock-Token", "<"+token+">").to("/dav/copy")
					method, target, _ := strings.Cut(strings.ReplaceAll(request, "%s", path), " ")
					target, body, _ := strings.Cut(target, " ")
					switch {
					case method == "GET" && target == "/dav/open":
						c, body = c.with("If", "<"+path+"> (<"+token+">)"), ""
					case target == "/dav/open":
						c, body = c.to(body), ""
					case method == "MOVE":
						c = c.with("Depth", "infinity")
					}
					a := c.do(method, target, body)
					got = append(got, fmt.Sprint(a.status, " ", string(a.text)))
				}
				assert.Equal(t, got[1], got[0], "%s: "+request, who, path)
				assert.Regexp(t, "^4", got[0], "%s: "+request, who, path)
			}
		}
	}
	list := string(hidden.as(t, "bob-key").with("Depth", "1").do("PROPFIND", "/dav/", nil).text)
	assert.NotContains(t, list, "secret")
	assert.NotContains(t, string(hidden.as(t, "bob-key").with("Depth", "1").do("PROPFIND", "/dav/a/", nil).text), "secret")
	hidden.as(t, "ann-key").status(http.StatusForbidden, "DELETE /dav/a")
}

func basicAuth(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}
