package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ticketed has requests with and without a ticket.
var ticketed = map[string]struct {
	path             string
	target, ticketed string
	body, withTicket object
}{
	"document": {path: "documents/r", target: lockOf("r") + "?wait_ms=20000", ticketed: lockOf("r") + "?wait_ms=20000&ticket=t-1",
		body: object{}, withTicket: object{}},
	"path": {path: "a/b", target: "/api/locks", ticketed: "/api/locks",
		body: object{"paths": [][]string{{"a", "b"}}, "wait_ms": 20000}, withTicket: object{"paths": [][]string{{"a", "b"}}, "wait_ms": 20000, "ticket": "t-2"}},
}

// A ticket keeps a place in line for a client whose connection breaks, on documents and on paths, and on another server too.
func TestATicketKeepsAPlaceInLine(t *testing.T) {
	t.Parallel()
	first := start(t, nil)
	second := first.another(t, nil)
	for name, c := range ticketed {
		t.Run(name, func(t *testing.T) {
			ann, bob, eve := first.as(t, "ann"), first.as(t, "bob"), first.as(t, "eve")
			held := ann.do("POST", c.target, c.body)

			connected, cut := context.WithCancel(t.Context())
			defer cut()
			broken := make(chan error, 1)
			go func() {
				_, err := bob.try(connected, "POST", c.ticketed, c.withTicket)
				broken <- err
			}()
			ann.seesWaiting(c.path, 1)
			cut()
			require.Error(t, <-broken)
			ann.seesWaiting(c.path, 0)

			type turn struct {
				who string
				answer
			}
			turns := make(chan turn, 2)
			wait := func(as client, target string, body object) {
				a, err := as.try(t.Context(), "POST", target, body)
				assert.NoError(t, err)
				turns <- turn{as.secret, a}
			}
			go wait(eve, c.target, c.body)
			ann.seesWaiting(c.path, 1)
			go wait(second.as(t, "bob"), c.ticketed, c.withTicket)
			ann.seesWaiting(c.path, 2)

			ann.releases(t, held)
			for _, who := range []client{bob, eve} {
				next := <-turns
				assert.Equal(t, who.secret, next.who)
				who.releases(t, next.answer)
			}
		})
	}
	ann := first.as(t, "ann")
	assertError(t, ann.do("POST", lockOf("x")+"?ticket=a/b", nil), http.StatusBadRequest, "invalid_request")
	assertError(t, ann.do("POST", "/api/locks", object{"paths": [][]string{{"x"}}, "ticket": "a/b"}), http.StatusBadRequest, "invalid_request")
}

// releases ends a lease of a path, or the lock of the document r.
func (c client) releases(t *testing.T, held answer) {
	t.Helper()
	require.Equal(t, http.StatusOK, held.status, string(held.text))
	target := lockOf("r")
	if id, ok := held.body["lease_id"].(string); ok {
		target = "/api/locks/" + id
	}
	require.Equal(t, http.StatusOK, c.do("DELETE", target, nil).status)
}

// A request that the network has delayed arrives after its successor. The waiter gets an error, and loses nothing.
func TestALateRequestTakesNoPlaceAway(t *testing.T) {
	t.Parallel()
	first := start(t, nil)
	second := first.another(t, nil)
	ann, bob, eve := first.as(t, "ann"), first.as(t, "bob"), first.as(t, "eve")
	require.Equal(t, http.StatusOK, ann.do("POST", lockOf("r"), nil).status)
	const ticketed = "?wait_ms=20000&ticket=t&fresh=true"
	wait := func(as client, query string, n int) <-chan answer {
		answers := make(chan answer, 1)
		go func() {
			a, err := as.try(t.Context(), "POST", lockOf("r")+query, nil)
			assert.NoError(t, err)
			answers <- a
		}()
		ann.seesWaiting("documents/r", n)
		return answers
	}
	waiting := wait(bob, ticketed, 1)
	behind := wait(eve, "?wait_ms=20000", 2)

	kept, cut := context.WithCancel(t.Context())
	defer cut()
	late := make(chan error, 1)
	go func() {
		_, err := second.as(t, "bob").try(kept, "POST", lockOf("r")+ticketed, nil)
		late <- err
	}()
	assertError(t, <-waiting, http.StatusConflict, "replaced")
	cut()
	require.Error(t, <-late)
	ann.seesWaiting("documents/r", 1)
	waiting = wait(bob, ticketed, 2)
	require.Equal(t, http.StatusOK, ann.do("DELETE", lockOf("r"), nil).status)
	require.Equal(t, http.StatusOK, (<-waiting).status)
	require.Equal(t, http.StatusOK, bob.do("DELETE", lockOf("r"), nil).status)
	require.Equal(t, http.StatusOK, (<-behind).status)
}

// The last request of a client that leaves is carried out: the client does not wait for the answer, but others wait for the lock.
func TestALockIsGivenBackByAClientThatHasGone(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	require.Equal(t, http.StatusOK, ann.do("POST", lockOf("r"), nil).status)
	lease := ann.do("POST", "/api/locks", object{"paths": [][]string{{"p"}}}).body["lease_id"].(string)
	gone, leave := context.WithCancel(t.Context())
	leave()
	for path, target := range map[string]string{"documents/r": lockOf("r"), "p": "/api/locks/" + lease} {
		request := httptest.NewRequestWithContext(gone, "DELETE", target, nil)
		request.Host = "localhost"
		request.Header.Set("Authorization", "Bearer ann")
		s.Handler().ServeHTTP(httptest.NewRecorder(), request)
		assert.Empty(t, ann.do("GET", "/api/locks?path="+path, nil).body["holders"], path)
	}
}

// A client that gives up says so by its ticket, and may not know whether it was granted. A copy of its request that comes later gets nothing.
func TestGivingUpByTicket(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	bob, eve := s.as(t, "bob"), s.as(t, "eve")
	place := object{"paths": [][]string{{"documents", "r", "x"}}, "ticket": "p"}
	for _, c := range []struct {
		ticket, target string
		body           object
	}{{"d", lockOf("r") + "?ticket=d", nil}, {"p", "/api/locks", place}} {
		require.Equal(t, http.StatusOK, bob.do("POST", c.target, c.body).status)
		assert.Equal(t, http.StatusOK, eve.do("DELETE", "/api/locks?ticket="+c.ticket, nil).status, "her own")
		assert.Equal(t, true, bob.do("GET", lockOf("r"), nil).body["is_my_lock"])
		assert.Equal(t, http.StatusOK, bob.do("DELETE", "/api/locks?ticket="+c.ticket, nil).status)
		assert.Equal(t, false, bob.do("GET", lockOf("r"), nil).body["is_locked"])
		assertError(t, bob.do("POST", c.target, c.body), http.StatusConflict, "given_up")
		assert.Equal(t, false, bob.do("GET", lockOf("r"), nil).body["is_locked"])
	}
	// One ticket for several locks is the mistake of a client. Giving it up leaves none of them.
	require.Equal(t, http.StatusOK, bob.do("POST", "/api/locks", object{"paths": [][]string{{"one"}}, "mode": "shared", "ticket": "twice"}).status)
	require.Equal(t, http.StatusOK, bob.do("POST", "/api/locks", object{"paths": [][]string{{"two"}}, "ticket": "twice"}).status)
	require.Equal(t, http.StatusOK, bob.do("POST", "/api/locks", object{"paths": [][]string{{"three"}}, "ticket": "twice"}).status)
	assert.Equal(t, http.StatusOK, bob.do("DELETE", "/api/locks?ticket=twice", nil).status)
	for _, path := range []string{"one", "two", "three"} {
		assert.Empty(t, bob.do("GET", "/api/locks?path="+path, nil).body["holders"], path)
	}
	for _, ticket := range []string{"", "a/b", strings.Repeat("x", 65)} {
		assertError(t, bob.do("DELETE", "/api/locks?ticket="+url.QueryEscape(ticket), nil), http.StatusBadRequest, "invalid_request")
	}
}

// A tab that holds the lock between the tabs names the leases that another tab left behind. Later requests end no other leases.
func TestReplacingByToken(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	browser := s.as(t, "the session of a browser")
	for name, c := range map[string]struct {
		ask func(ticket string, replace ...int64) answer
	}{
		"a document": {func(ticket string, replace ...int64) answer {
			return browser.do("POST", lockOf("r")+"?wait_ms=20000&ticket="+ticket+"&replace="+joined(replace), nil)
		}},
		"a place": {func(ticket string, replace ...int64) answer {
			return browser.do("POST", "/api/locks", object{"paths": [][]string{{"p"}}, "wait_ms": 20000, "ticket": ticket, "replace": append([]int64{}, replace...)})
		}},
		"asked for": {func(ticket string, replace ...int64) answer {
			return browser.do("POST", lockOf("s")+"/ask?ticket="+ticket+"&replace="+joined(replace), nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			prefix := strings.ReplaceAll(name, " ", "-")
			left := c.ask(prefix + "-1")
			require.Equal(t, http.StatusOK, left.status, string(left.text))
			found := c.ask(prefix + "-2")
			assertError(t, found, http.StatusConflict, "left_behind")
			require.Equal(t, []any{float64(left.token())}, found.body["tokens"])
			second := c.ask(prefix+"-2", left.token())
			require.Equal(t, http.StatusOK, second.status, string(second.text))
			require.Greater(t, second.token(), left.token())
			assertError(t, c.ask(prefix+"-3", left.token()), http.StatusConflict, "left_behind")
			again := c.ask(prefix+"-2", left.token())
			require.Equal(t, second.token(), again.token(), "its answer was lost")
		})
	}
	assertError(t, browser.do("POST", lockOf("r")+"?replace=x", nil), http.StatusBadRequest, "invalid_request")
}

func joined(tokens []int64) string {
	var list []string
	for _, token := range tokens {
		list = append(list, strconv.FormatInt(token, 10))
	}
	return strings.Join(list, ",")
}
