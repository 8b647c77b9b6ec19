package server_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A ticket keeps a place in line for a client whose connection breaks, on documents and on paths, and on another server too.
func TestATicketKeepsAPlaceInLine(t *testing.T) {
	t.Parallel()
	first := start(t, nil)
	second := first.another(t, nil)
	place := [][]string{{"a", "b"}}
	for name, c := range map[string]struct {
		path             string
		target, ticketed string
		body, withTicket object
	}{
		"document": {path: "documents/r", target: lockOf("r") + "?wait_ms=20000", ticketed: lockOf("r") + "?wait_ms=20000&ticket=t-1",
			body: object{}, withTicket: object{}},
		"path": {path: "a/b", target: "/api/locks", ticketed: "/api/locks",
			body: object{"paths": place, "wait_ms": 20000}, withTicket: object{"paths": place, "wait_ms": 20000, "ticket": "t-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			ann, bob, eve := first.as(t, "ann"), first.as(t, "bob"), first.as(t, "eve")
			release := func(as client, held answer) {
				require.Equal(t, http.StatusOK, held.status, string(held.text))
				target := lockOf("r")
				if id, ok := held.body["lease_id"].(string); ok {
					target = "/api/locks/" + id
				}
				require.Equal(t, http.StatusOK, as.do("DELETE", target, nil).status)
			}
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

			release(ann, held)
			for _, who := range []client{bob, eve} {
				next := <-turns
				assert.Equal(t, who.secret, next.who)
				release(who, next.answer)
			}
		})
	}
	ann := first.as(t, "ann")
	assertError(t, ann.do("POST", lockOf("x")+"?ticket=a/b", nil), http.StatusBadRequest, "invalid_request")
	assertError(t, ann.do("POST", "/api/locks", object{"paths": [][]string{{"x"}}, "ticket": "a/b"}), http.StatusBadRequest, "invalid_request")
}
