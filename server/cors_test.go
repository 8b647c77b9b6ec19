package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/remote"
	"github.com/holdfast-dev/holdfast/server"
)

func corsHeaders(h http.Header) (list []string) {
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			list = append(list, name)
		}
	}
	return list
}

// Browsers give an answer of the API to pages of the origins that are listed, and to no others.
func TestPagesOfOtherOrigins(t *testing.T) {
	t.Parallel()
	const friend = "https://friend.example"
	s := start(t, func(c *server.Config) { c.Origins = []string{friend, "http://localhost:3000"} })
	closed := start(t, nil)
	ann := s.as(t, "ann")
	token := ann.lock("r")
	assert.Equal(t, http.StatusOK, ann.save("r", token, "text").status)

	for _, origin := range []string{friend, "http://localhost:3000"} {
		asked := ann.with("Origin", origin).do("GET", contentOf("r"), nil)
		assert.Equal(t, "text", string(asked.text))
		assert.Equal(t, origin, asked.header.Get("Access-Control-Allow-Origin"))
		assert.Equal(t, "true", asked.header.Get("Access-Control-Allow-Credentials"))
		assert.Contains(t, asked.header.Values("Vary"), "Origin")
		for _, name := range []string{"ETag", remote.HeaderToken, remote.HeaderSavedAt, "Holdfast-Revision", "Holdfast-Generation", "Content-Range", "Retry-After"} {
			assert.Contains(t, asked.header.Get("Access-Control-Expose-Headers"), name)
		}
		refused := s.as(t, "bob").with("Origin", origin).do("POST", lockOf("r"), nil)
		assertError(t, refused, http.StatusConflict, "already_locked")
		assert.Equal(t, origin, refused.header.Get("Access-Control-Allow-Origin"), "errors are answers, too")

		for _, method := range []string{"PUT", "POST", "DELETE"} {
			asks := s.as(t, "").with("Origin", origin).with("Access-Control-Request-Method", method).
				with("Access-Control-Request-Headers", "content-type,holdfast-token").do("OPTIONS", contentOf("r"), nil)
			assert.Equal(t, http.StatusNoContent, asks.status)
			assert.Equal(t, origin, asks.header.Get("Access-Control-Allow-Origin"))
			assert.Contains(t, asks.header.Get("Access-Control-Allow-Methods"), method)
			for _, name := range []string{remote.HeaderToken, "If-Match", "If-None-Match", "If-Range", "If-Unmodified-Since"} {
				assert.Contains(t, asks.header.Get("Access-Control-Allow-Headers"), name)
			}
			assert.Empty(t, asks.header.Get("Set-Cookie"), "a preflight makes no session")
		}
	}
	assertClosed(t, ann, s.URL, friend)
	none := closed.as(t, "ann").with("Origin", friend).do("GET", lockOf("r"), nil)
	assert.Empty(t, corsHeaders(none.header))
	for _, path := range []string{"/metrics", "/healthz"} {
		assert.Empty(t, corsHeaders(ann.with("Origin", friend).do("GET", path, nil).header), path)
	}
}

// assertClosed checks that pages of origins that are not listed get no answer, however similar they are to those of a friend or the server.
func assertClosed(t *testing.T, ann client, server, friend string) {
	t.Helper()
	for _, origin := range []string{
		"", "null", "*", server, "https://evil.example", friend + ".evil.example", friend + ":8443", "http://friend.example",
		strings.ToUpper(friend), friend + "/", friend + ", https://evil.example",
	} {
		for _, ask := range []func(client) answer{
			func(c client) answer { return c.do("GET", contentOf("r"), nil) },
			func(c client) answer {
				return c.with("Access-Control-Request-Method", "PUT").do("OPTIONS", contentOf("r"), nil)
			},
		} {
			a := ask(ann.with("Origin", origin))
			assert.Empty(t, corsHeaders(a.header), "%q", origin)
			assert.Contains(t, a.header.Values("Vary"), "Origin", "no cache gives one origin's answer to another")
		}
	}
}
