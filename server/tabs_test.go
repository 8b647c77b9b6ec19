package server_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The tabs of one browser are one session. The token tells them apart where they say it.
func TestTabsOfOneSession(t *testing.T) {
	s := start(t, nil)
	browser := s.as(t, "the session of a browser")
	speaking := func(token int64) client { return browser.with("Holdfast-Token", strconv.FormatInt(token, 10)) }

	dead := browser.lock("r")
	fresh := browser.do("POST", lockOf("r")+"?fresh=true", nil)
	require.Equal(t, http.StatusOK, fresh.status, string(fresh.text))
	assert.Greater(t, fresh.token(), dead)

	assertError(t, speaking(dead).do("PUT", lockOf("r"), nil), http.StatusConflict, "stale_token")
	assertError(t, speaking(dead).do("DELETE", lockOf("r"), nil), http.StatusConflict, "stale_token")
	assertError(t, browser.save("r", dead, "late"), http.StatusConflict, "stale_token")
	assertError(t, browser.with("Holdfast-Token", "x").do("PUT", lockOf("r"), nil), http.StatusBadRequest, "invalid_request")

	assert.Equal(t, http.StatusOK, speaking(fresh.token()).do("PUT", lockOf("r"), nil).status)
	assert.Equal(t, http.StatusOK, speaking(fresh.token()).do("DELETE", lockOf("r"), nil).status)
	assert.Equal(t, false, browser.do("GET", lockOf("r"), nil).body["is_locked"])
}

// Who asks for a fresh lock gives back the old one: somebody who waited comes first.
func TestAFreshLockWaitsItsTurn(t *testing.T) {
	s := start(t, nil)
	browser, other := s.as(t, "the session of a browser"), s.as(t, "somebody else")
	browser.lock("r")
	waiting := make(chan answer, 1)
	go func() {
		a, _ := other.try(t.Context(), "POST", lockOf("r")+"?wait_ms=20000", nil)
		waiting <- a
	}()
	require.Eventually(t, func() bool {
		list, _ := browser.do("GET", "/api/locks?path=documents/r", nil).body["waiters"].([]any)
		return len(list) == 1
	}, 5*time.Second, 5*time.Millisecond)

	assertError(t, browser.do("POST", lockOf("r")+"?fresh=true", nil), http.StatusConflict, "already_locked")
	assert.Equal(t, http.StatusOK, (<-waiting).status)
}
