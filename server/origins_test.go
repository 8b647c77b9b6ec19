package server_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

// cookieOf returns the cookie that the server gives a browser with the answer.
func cookieOf(t *testing.T, a answer) string {
	t.Helper()
	require.Less(t, a.status, 300, string(a.text))
	cookie, _, ok := strings.Cut(a.header.Get("Set-Cookie"), ";")
	require.True(t, ok)
	return cookie
}

// browserWith returns a browser with these cookies.
func (i *instance) browserWith(t *testing.T, cookies ...string) client {
	return i.as(t, "").with("Cookie", strings.Join(cookies, "; "))
}

func (c client) speaking(token int64) client {
	return c.with(remote.HeaderToken, strconv.FormatInt(token, 10))
}

// Browsers send one cookie from all origins of a site and from all ports of a host, and each origin has Web Locks of its own.
func TestOriginsOfOneBrowserAreDifferentOwners(t *testing.T) {
	t.Parallel()
	const friend = "http://localhost:3000"
	s := start(t, func(c *server.Config) { c.Origins = []string{friend} })
	browser := s.browserWith(t, cookieOf(t, s.as(t, "").do("GET", lockOf("x"), nil)))
	for name, other := range map[string]client{
		"another origin":          browser.with("Origin", friend),
		"another port":            browser.with("Host", "localhost:1"),
		"an origin of the site":   browser.with("Origin", friend).with("Sec-Fetch-Site", "same-site"),
		"a proxy that sets Host":  browser.with("Origin", "http://localhost:5173").with("Sec-Fetch-Site", "same-origin"),
		"another port, by a page": browser.with("Host", "localhost:1").with("Origin", "http://localhost:1").with("Sec-Fetch-Site", "same-origin"),
	} {
		t.Run(name, func(t *testing.T) {
			token := browser.lock("r")
			place := browser.do("POST", "/api/locks", object{"paths": [][]string{{"p"}}})
			require.Equal(t, http.StatusOK, place.status)
			lease := "/api/locks/" + place.body["lease_id"].(string)

			for _, query := range []string{"", "?fresh=true"} {
				assertError(t, other.do("POST", lockOf("r")+query, nil), http.StatusConflict, "already_locked")
			}
			assertError(t, other.do("POST", "/api/locks", object{"paths": [][]string{{"p"}}, "fresh": true}), http.StatusConflict, "acquire_denied")
			for _, method := range []string{"PUT", "DELETE"} {
				assertError(t, other.do(method, lockOf("r"), nil), http.StatusForbidden, "not_locked_by_user")
				assertError(t, other.do(method, lease, nil), http.StatusForbidden, "not_locked_by_user")
			}
			assertError(t, other.save("r", token, "text"), http.StatusForbidden, "not_locked_by_user")
			assert.Equal(t, false, other.do("GET", lockOf("r"), nil).body["is_my_lock"])

			own := browser.with("Origin", s.URL).with("Sec-Fetch-Site", "same-origin")
			assert.Equal(t, true, own.do("GET", lockOf("r"), nil).body["is_my_lock"])
			assert.Equal(t, true, browser.do("GET", lockOf("r"), nil).body["is_my_lock"], "browsers leave the origin out of GET")
			assert.Equal(t, http.StatusOK, own.speaking(token).do("PUT", lockOf("r"), nil).status)
			assert.Equal(t, http.StatusOK, own.do("PUT", lease, nil).status)
			assert.Equal(t, http.StatusOK, own.do("DELETE", lease, nil).status)
			assert.Equal(t, http.StatusOK, own.do("DELETE", lockOf("r"), nil).status)
		})
	}
}

// The development server of Vite sets Host to that of its target. Browsers leave Origin out of the GET requests of its pages.
func TestPageBehindAProxyThatSetsHostIsOneOwner(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	page := s.browserWith(t, cookieOf(t, s.as(t, "").do("GET", lockOf("x"), nil))).with("Sec-Fetch-Site", "same-origin")
	page.with("Origin", "http://localhost:5173").lock("r")
	read := page.with("Referer", "http://localhost:5173/assets/worker.js")
	assert.Equal(t, true, read.do("GET", lockOf("r"), nil).body["is_my_lock"])
	other := page.with("Referer", "http://localhost:5174/")
	assert.Equal(t, false, other.do("GET", lockOf("r"), nil).body["is_my_lock"])
}

// A page sends two requests before the browser has a cookie. Their answers come in any order.
func TestFirstVisitInParallelMakesOneOwner(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for name, late := range map[string]bool{"in order": false, "reordered": true} {
		t.Run(name, func(t *testing.T) {
			document, other, place := "r-"+strconv.FormatBool(late), "s-"+strconv.FormatBool(late), [][]string{{"p", name}}
			nobody := s.as(t, "")
			first, second := nobody.do("POST", lockOf(document)+"?ticket=a", nil), nobody.do("POST", lockOf(other), nil)
			third := nobody.do("POST", "/api/locks", object{"paths": place})
			cookies := []string{cookieOf(t, first), cookieOf(t, second), cookieOf(t, third)}
			if late {
				cookies = []string{cookies[2], cookies[1], cookies[0]}
			}
			jar := map[string]string{} // a browser has one cookie of each name
			for _, c := range cookies {
				name, _, _ := strings.Cut(c, "=")
				jar[name] = c
			}
			all := make([]string, 0, len(jar))
			for _, c := range jar {
				all = append(all, c)
			}
			browser := s.browserWith(t, all...)

			again := browser.do("POST", lockOf(document)+"?ticket=a", nil)
			require.Equal(t, http.StatusOK, again.status, string(again.text))
			assert.Equal(t, first.token(), again.token(), "its answer was lost")
			for r, token := range map[string]int64{document: first.token(), other: second.token()} {
				assert.Equal(t, http.StatusOK, browser.speaking(token).do("PUT", lockOf(r), nil).status)
				assert.Equal(t, true, browser.do("GET", lockOf(r), nil).body["is_my_lock"])
				assert.Equal(t, http.StatusOK, browser.save(r, token, "text").status)
				fresh := browser.do("POST", lockOf(r)+"?fresh=true", nil)
				require.Equal(t, http.StatusOK, fresh.status, string(fresh.text))
				assert.Equal(t, http.StatusOK, browser.speaking(fresh.token()).do("DELETE", "/api/documents/"+r, nil).status)
				assert.Equal(t, http.StatusOK, browser.speaking(fresh.token()).do("DELETE", lockOf(r), nil).status)
			}
			lease := "/api/locks/" + third.body["lease_id"].(string)
			assert.Equal(t, http.StatusOK, browser.do("PUT", lease, nil).status)
			assert.Equal(t, http.StatusOK, browser.do("DELETE", lease, nil).status)
			assert.Empty(t, browser.do("POST", lockOf(document), nil).header.Get("Set-Cookie"))
			browser.do("DELETE", lockOf(document), nil)
		})
	}
}

// A tab that is gone holds places under another id of the same browser. The next tab replaces them all, wherever they are.
func TestPlacesOfOneBrowserAreReplacedUnderEachId(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	older, younger := cookieOf(t, s.as(t, "").do("GET", lockOf("x"), nil)), cookieOf(t, s.as(t, "").do("GET", lockOf("x"), nil))
	exact := func(ticket string, replace []int64, paths ...[]string) object {
		return object{"paths": paths, "ticket": ticket, "replace": replace}
	}
	gone := s.browserWith(t, younger)
	one := gone.do("POST", "/api/locks", exact("one", []int64{}, []string{"b"}))
	two := gone.do("POST", "/api/locks", exact("two", []int64{}, []string{"c", "below"}))
	require.Equal(t, []int{http.StatusOK, http.StatusOK}, []int{one.status, two.status})
	other := s.as(t, "somebody else").do("POST", "/api/locks", object{"paths": [][]string{{"a"}}})
	require.Equal(t, http.StatusOK, other.status)

	browser, wanted := s.browserWith(t, older, younger), [][]string{{"0"}, {"b"}, {"c"}}
	left := browser.do("POST", "/api/locks", exact("next", []int64{}, wanted...))
	assertError(t, left, http.StatusConflict, "left_behind")
	require.NotNil(t, left.body["tokens"])
	assert.ElementsMatch(t, []any{float64(one.token()), float64(two.token())}, left.body["tokens"])
	next := browser.do("POST", "/api/locks", exact("next", []int64{one.token(), two.token()}, wanted...))
	assert.Equal(t, http.StatusOK, next.status, string(next.text))
	assertError(t, browser.do("POST", "/api/locks", exact("more", []int64{}, []string{"a"})), http.StatusConflict, "acquire_denied")
}

// Servers on different ports of one host get each other's cookies.
func TestServersOfOneHostLeaveEachOtherTheirCookies(t *testing.T) {
	t.Parallel()
	one, two := start(t, nil), start(t, nil)
	first := cookieOf(t, one.as(t, "").do("POST", lockOf("r"), nil))
	second := cookieOf(t, two.browserWith(t, first).do("POST", lockOf("r"), nil))
	name := func(cookie string) string { n, _, _ := strings.Cut(cookie, "="); return n }
	assert.NotEqual(t, name(first), name(second), "the second would replace the first")
	for _, s := range []*instance{one, two} {
		assert.Equal(t, http.StatusOK, s.browserWith(t, first, second).do("PUT", lockOf("r"), nil).status)
	}
}

// A developer has run many servers on localhost. The browser keeps a cookie of each for a year, up to 180, and sends the oldest ones first.
func TestBrowserWithCookiesOfManyServers(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	own := cookieOf(t, s.as(t, "").do("GET", lockOf("x"), nil))
	var cookies []string
	for range 179 {
		store := sessions.Source{Key: []byte(rand.Text())}
		answer := httptest.NewRecorder()
		_, err := store.Of(answer, httptest.NewRequest("GET", s.URL, nil))
		require.NoError(t, err)
		cookie, _, _ := strings.Cut(answer.Header().Get("Set-Cookie"), ";")
		cookies = append(cookies, cookie)
	}
	browser := s.browserWith(t, append(cookies, own)...)
	granted := browser.do("POST", lockOf("r")+"?replace=", nil)
	require.Equal(t, http.StatusOK, granted.status, string(granted.text))
	assert.Empty(t, granted.header.Get("Set-Cookie"))
	assert.Equal(t, http.StatusOK, browser.speaking(granted.token()).do("PUT", lockOf("r"), nil).status)
}

// A request that was sent before the browser had its oldest id waits. It is the browser's own in the listing.
func TestAWaitingRequestUnderALaterIdIsMine(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	one, two := cookieOf(t, s.as(t, "").do("GET", lockOf("x"), nil)), cookieOf(t, s.as(t, "").do("GET", lockOf("x"), nil))
	s.as(t, "somebody else").lock("r")
	waiter := s.browserWith(t, two)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _, _ = waiter.try(ctx, "POST", lockOf("r")+"?wait_ms=60000", nil) }()
	waiter.seesWaiting("documents/r", 1)
	waiters := s.browserWith(t, one, two).do("GET", "/api/locks?path=documents/r", nil).body["waiters"].([]any)
	assert.Equal(t, true, waiters[0].(object)["is_mine"])
}

// A browser with several ids asks for places that nobody may lock. The answer is that of every other client, and nothing is looked
// up for it.
func TestPlacesTooDeepForABrowserWithSeveralIds(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	one, two := cookieOf(t, s.as(t, "").do("GET", lockOf("x"), nil)), cookieOf(t, s.as(t, "").do("GET", lockOf("x"), nil))
	browser := s.browserWith(t, one, two)
	for _, path := range [][]string{{}, {""}, {strings.Repeat("a", 129)}, slices.Repeat([]string{"a"}, 17), slices.Repeat([]string{"a"}, 10_000)} {
		assertError(t, browser.do("POST", "/api/locks", object{"paths": [][]string{path}}), http.StatusBadRequest, "invalid_request")
	}
}

// A browser has two ids, one of which has as many tickets as it may. The lease that the other one holds is given back by its ticket.
func TestTheBoundOfTicketsOfOneIDKeepsNoLeaseOfAnother(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.MaxTickets = 2 })
	for holder := range 2 {
		cookies := []string{cookieOf(t, s.as(t, "").do("GET", lockOf("r"), nil)), cookieOf(t, s.as(t, "").do("GET", lockOf("r"), nil))}
		require.Equal(t, http.StatusOK, s.browserWith(t, cookies[holder]).do("POST", lockOf("r")+"?ticket=held", nil).status)
		for i := range 2 {
			s.browserWith(t, cookies[1-holder]).do("DELETE", fmt.Sprint("/api/locks?ticket=", i), nil)
		}
		browser := s.browserWith(t, cookies...)
		assertError(t, browser.do("DELETE", "/api/locks?ticket=held", nil), http.StatusTooManyRequests, "too_many_locks")
		assert.JSONEq(t, `{"is_locked": false}`, string(browser.do("GET", lockOf("r"), nil).text))
	}
}
