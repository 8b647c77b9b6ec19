package server_test

import (
	"maps"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
)

// The tabs of one browser are one session. The token tells them apart where they say it.
func TestTabsOfOneSession(t *testing.T) {
	s := start(t, nil)
	browser := s.as(t, "the session of a browser")
	speaking := func(token int64) client { return browser.with(remote.HeaderToken, strconv.FormatInt(token, 10)) }

	dead := browser.lock("r")
	fresh := browser.do("POST", lockOf("r")+"?fresh=true", nil)
	require.Equal(t, http.StatusOK, fresh.status, string(fresh.text))
	assert.Greater(t, fresh.token(), dead)

	assertError(t, speaking(dead).do("PUT", lockOf("r"), nil), http.StatusConflict, "stale_token")
	assertError(t, speaking(dead).do("DELETE", lockOf("r"), nil), http.StatusConflict, "stale_token")
	assertError(t, browser.save("r", dead, "late"), http.StatusConflict, "stale_token")
	assertError(t, browser.with(remote.HeaderToken, "x").do("PUT", lockOf("r"), nil), http.StatusBadRequest, "invalid_request")

	assert.Equal(t, http.StatusOK, speaking(fresh.token()).do("PUT", lockOf("r"), nil).status)
	assert.Equal(t, http.StatusOK, speaking(fresh.token()).do("DELETE", lockOf("r"), nil).status)
	assert.Equal(t, false, browser.do("GET", lockOf("r"), nil).body["is_locked"])
}

// A session that asks for a fresh lock releases its old one: a waiter comes first.
func TestAFreshLockWaitsItsTurn(t *testing.T) {
	s := start(t, nil)
	browser, other := s.as(t, "the session of a browser"), s.as(t, "another session")
	browser.lock("r")
	waiting := make(chan answer, 1)
	go func() {
		a, _ := other.try(t.Context(), "POST", lockOf("r")+"?wait_ms=20000", nil)
		waiting <- a
	}()
	browser.seesWaiting("documents/r", 1)

	assertError(t, browser.do("POST", lockOf("r")+"?fresh=true", nil), http.StatusConflict, "already_locked")
	assert.Equal(t, http.StatusOK, (<-waiting).status)
}

type paths = [][]string

// freshRequests has a lease that a tab left behind, and the request of a later tab.
var freshRequests = []struct {
	name       string
	old, fresh object
	replaced   bool
}{
	{"the same place", object{"paths": paths{{"a"}}}, object{"paths": paths{{"a"}}}, true},
	{"below it", object{"paths": paths{{"a", "b"}}}, object{"paths": paths{{"a"}}}, true},
	{"above it", object{"paths": paths{{"a"}}}, object{"paths": paths{{"a", "b"}}}, true},
	{"shared", object{"paths": paths{{"a"}}, "mode": "shared"}, object{"paths": paths{{"a"}}}, true},
	{"now shared", object{"paths": paths{{"a"}}}, object{"paths": paths{{"a", "b"}}, "mode": "shared"}, true},
	{"a slot, now the whole", object{"paths": paths{{"a"}}, "slots": 2}, object{"paths": paths{{"a"}}}, true},
	{"the whole, now a slot", object{"paths": paths{{"a"}}}, object{"paths": paths{{"a"}}, "slots": 2}, true},
	{"one of several", object{"paths": paths{{"a"}, {"b"}}}, object{"paths": paths{{"b"}, {"c"}}}, true},
	{"a document", object{"paths": paths{{"documents", "r"}}}, object{"paths": paths{{"documents", "r", "a"}}}, true},
	{"below a slot", object{"paths": paths{{"a"}}, "slots": 2}, object{"paths": paths{{"a", "b"}}}, false},
	{"a slot above it", object{"paths": paths{{"a", "b"}}}, object{"paths": paths{{"a"}}, "slots": 2}, false},
	{"a slot, now shared", object{"paths": paths{{"a"}}, "slots": 2}, object{"paths": paths{{"a"}}, "mode": "shared"}, false},
}

// A fresh request ends the blocking leases that another tab of the session left behind, and no others.
func TestFreshRequestEndsOnlyBlockingLeases(t *testing.T) {
	s := start(t, nil)
	browser, other := s.as(t, "the session of a browser"), s.as(t, "another session")
	for _, c := range freshRequests {
		t.Run(c.name, func(t *testing.T) {
			old := browser.do("POST", "/api/locks", c.old)
			require.Equal(t, http.StatusOK, old.status, string(old.text))
			beat := "/api/locks/" + old.body["lease_id"].(string)
			assertError(t, browser.do("POST", "/api/locks", c.fresh), http.StatusConflict, "acquire_denied")
			request := maps.Clone(c.fresh)
			request["fresh"] = true
			assertError(t, other.do("POST", "/api/locks", request), http.StatusConflict, "acquire_denied")
			fresh := browser.do("POST", "/api/locks", request)
			if !c.replaced {
				assertError(t, fresh, http.StatusConflict, "acquire_denied")
				assert.Equal(t, http.StatusOK, browser.do("PUT", beat, nil).status)
				assert.Equal(t, http.StatusOK, browser.do("DELETE", beat, nil).status)
				return
			}
			require.Equal(t, http.StatusOK, fresh.status, string(fresh.text))
			assert.Greater(t, fresh.token(), old.token())
			assertError(t, browser.do("PUT", beat, nil), http.StatusNotFound, "lock_not_found")
			assert.Equal(t, http.StatusOK, browser.do("DELETE", beat, nil).status, "which harms nobody")
			own := "/api/locks/" + fresh.body["lease_id"].(string)
			assert.Equal(t, http.StatusOK, browser.do("PUT", own, nil).status)
			assert.Equal(t, http.StatusOK, browser.do("DELETE", own, nil).status)
		})
	}

	// The request waits for other blocking holders, once the session's own leases have ended.
	own := browser.do("POST", "/api/locks", object{"paths": paths{{"a"}}})
	require.Equal(t, http.StatusOK, other.do("POST", "/api/locks", object{"paths": paths{{"b"}}}).status)
	assertError(t, browser.do("POST", "/api/locks", object{"paths": paths{{"a"}, {"b"}}, "fresh": true}), http.StatusConflict, "acquire_denied")
	assertError(t, browser.do("PUT", "/api/locks/"+own.body["lease_id"].(string), nil), http.StatusNotFound, "lock_not_found")

	// A document that is locked afresh takes the place of what a tab left below it.
	require.Equal(t, http.StatusOK, browser.do("POST", "/api/locks", object{"paths": paths{{"documents", "r", "x"}}, "mode": "shared"}).status)
	assertError(t, browser.do("POST", lockOf("r"), nil), http.StatusConflict, "already_locked")
	assert.Equal(t, http.StatusOK, browser.do("POST", lockOf("r")+"?fresh=true", nil).status)
}
