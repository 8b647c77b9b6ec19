package server_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asPage acquires a document like the package: it repeats a request without a session, and replaces the leases that a tab of its browser left
// behind. It returns the browser, with its cookie.
func (c client) asPage(document, ticket string) (client, answer) {
	ask := func(replace string) answer {
		return c.do("POST", lockOf(document)+"?ticket="+ticket+"&replace="+replace, nil)
	}
	a := ask("")
	if a.body["error"] == "no_session" {
		c = c.with("Cookie", a.header.Get("Set-Cookie"))
		a = ask("")
	}
	if tokens, ok := a.body["tokens"].([]any); ok {
		a = ask(strconv.Itoa(int(tokens[0].(float64))))
	}
	return c, a
}

// Browsers send no Sec-Fetch-Site to a server without HTTPS, old ones never do, and a proxy may remove it. Pages of one user in two browsers are
// two owners even so: no local lock keeps them apart.
func TestPagesOfOneUserInTwoBrowsersAreTwoOwners(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t, "")
	page := s.as(t, "ann-key").with("Origin", s.URL)
	one, held := page.asPage("r", "one")
	require.Equal(t, http.StatusOK, held.status, string(held.text))
	_, denied := page.asPage("r", "two")
	assertError(t, denied, http.StatusConflict, "already_locked")
	assert.Equal(t, http.StatusOK, one.speaking(held.token()).do("PUT", lockOf("r"), nil).status, "it still holds the lock")
}
