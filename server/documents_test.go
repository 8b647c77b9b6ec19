package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

func assertError(t testing.TB, a answer, status int, code string) {
	t.Helper()
	assert.Equal(t, status, a.status, string(a.text))
	assert.Equal(t, code, a.code(), string(a.text))
	assert.Equal(t, false, a.body["success"])
	assert.NotEmpty(t, a.body["message"])
	assert.Equal(t, "application/json", a.header.Get("Content-Type"))
}

// The table of document locks, row by row.
func TestDocumentLocks(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.LockTTL = 30 * time.Second })
	ann, bob := s.as(t, "secret of ann"), s.as(t, "secret of bob")

	assert.Equal(t, map[string]any{"is_locked": false}, bob.do("GET", lockOf("r"), nil).body)
	assertError(t, ann.do("PUT", lockOf("r"), nil), http.StatusNotFound, "lock_not_found")
	none := ann.do("DELETE", lockOf("r"), nil)
	assert.Equal(t, http.StatusOK, none.status)
	assert.Equal(t, true, none.body["success"])
	assert.NotEmpty(t, none.body["message"])

	before := time.Now()
	taken := ann.do("POST", lockOf("r"), map[string]any{"holder_name": "Ann"})
	require.Equal(t, http.StatusOK, taken.status, string(taken.text))
	assert.Equal(t, true, taken.body["success"])
	assert.WithinRange(t, taken.time(t, "locked_at"), before.Truncate(time.Millisecond), time.Now())
	assert.Equal(t, 30*time.Second, taken.time(t, "expires_at").Sub(taken.time(t, "locked_at")))
	assert.Positive(t, taken.token())

	denied := bob.do("POST", lockOf("r"), map[string]any{"holder_name": "Bob"})
	assertError(t, denied, http.StatusConflict, "already_locked")
	assert.Equal(t, sessions.HolderID("secret of ann"), denied.body["holder_id"])
	assert.Equal(t, "Ann", denied.body["holder_name"])
	assert.Equal(t, taken.body["locked_at"], denied.body["locked_at"])
	assert.Equal(t, taken.body["expires_at"], denied.body["expires_at"])
	assertError(t, bob.do("PUT", lockOf("r"), nil), http.StatusForbidden, "not_locked_by_user")
	assertError(t, bob.do("DELETE", lockOf("r"), nil), http.StatusForbidden, "not_locked_by_user")

	beat := ann.do("PUT", lockOf("r"), nil)
	require.Equal(t, http.StatusOK, beat.status)
	assert.Equal(t, true, beat.body["success"])
	assert.False(t, beat.time(t, "expires_at").Before(taken.time(t, "expires_at")))

	again := ann.do("POST", lockOf("r"), nil)
	require.Equal(t, http.StatusOK, again.status)
	assert.Equal(t, taken.token(), again.token(), "a repeat keeps its token")
	assert.Equal(t, taken.body["locked_at"], again.body["locked_at"])
	assert.False(t, again.time(t, "expires_at").Before(beat.time(t, "expires_at")))

	assertShown(t, s, taken, again)
	assert.Equal(t, http.StatusOK, ann.do("DELETE", lockOf("r"), nil).status)
	assert.Equal(t, map[string]any{"is_locked": false}, bob.do("GET", lockOf("r"), nil).body)
	assert.Greater(t, bob.lock("r"), taken.token(), "a later grant has a higher token")
}

// assertShown checks the lock as Ann and Bob see it, after it was taken and then renewed.
func assertShown(t *testing.T, s *instance, taken, again answer) {
	t.Helper()
	for who, mine := range map[string]bool{"secret of ann": true, "secret of bob": false} {
		shown := s.as(t, who).do("GET", lockOf("r"), nil)
		assert.Equal(t, map[string]any{
			"is_locked": true, "is_my_lock": mine, "holder_id": sessions.HolderID("secret of ann"), "holder_name": "Ann",
			"locked_at": taken.body["locked_at"], "expires_at": again.body["expires_at"], "token": taken.body["token"],
		}, shown.body)
		assert.NotContains(t, string(shown.text), "secret")
	}
}

func TestRoomIDs(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	for _, good := range []string{"a", "A-Z.a_z~0-9", strings.Repeat("x", 128), "-", "_"} {
		assert.Equal(t, http.StatusOK, ann.do("GET", lockOf(good), nil).status, good)
	}
	for _, bad := range []string{strings.Repeat("x", 129), "a%2Fb", "a%20b", "%C3%A9", "a!", "a%00", "a+b", "*"} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
			assertError(t, ann.do(method, lockOf(bad), nil), http.StatusBadRequest, "invalid_request")
		}
		assertError(t, ann.do("GET", contentOf(bad), nil), http.StatusBadRequest, "invalid_request")
		assertError(t, ann.do("GET", "/api/documents/"+bad+"/events", nil), http.StatusBadRequest, "invalid_request")
	}
}

func TestWaitingForADocument(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann, bob, eve := s.as(t, "ann"), s.as(t, "bob"), s.as(t, "eve")
	ann.lock("r")
	assertError(t, bob.do("POST", lockOf("r")+"?wait_ms=50", nil), http.StatusConflict, "already_locked")
	for _, bad := range []string{"-1", "60001", "x", "1.5"} {
		assertError(t, bob.do("POST", lockOf("r")+"?wait_ms="+bad, nil), http.StatusBadRequest, "invalid_request")
	}
	type arrival struct {
		who string
		answer
	}
	arrivals := make(chan arrival, 2)
	for n, c := range []client{bob, eve} {
		go func() {
			a, err := c.try(t.Context(), "POST", lockOf("r")+"?wait_ms=20000", nil)
			assert.NoError(t, err)
			arrivals <- arrival{c.secret, a}
		}()
		ann.seesWaiting("documents/r", n+1)
	}
	assert.Equal(t, http.StatusOK, ann.do("DELETE", lockOf("r"), nil).status)
	first := <-arrivals
	assert.Equal(t, "bob", first.who)
	assert.Equal(t, http.StatusOK, first.status, string(first.text))
	assert.Equal(t, http.StatusOK, bob.do("DELETE", lockOf("r"), nil).status)
	second := <-arrivals
	assert.Equal(t, "eve", second.who)
	assert.Greater(t, second.token(), first.token())
}

func TestContent(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann, bob := s.as(t, "ann"), s.as(t, "bob")
	assertError(t, ann.do("GET", contentOf("r"), nil), http.StatusNotFound, "document_not_found")
	token := ann.lock("r")
	for _, bad := range []string{"", "x", "0", "-1", "1.5"} {
		assertError(t, ann.with(remote.HeaderToken, bad).do("PUT", contentOf("r"), "x"), http.StatusBadRequest, "invalid_request")
	}
	assertError(t, bob.save("r", token, "x"), http.StatusForbidden, "not_locked_by_user")
	assertError(t, bob.save("r", 1, "x"), http.StatusForbidden, "not_locked_by_user")
	assertError(t, bob.save("r", token+1000, "x"), http.StatusForbidden, "not_locked_by_user")
	assertError(t, ann.save("r", token+1000, "x"), http.StatusConflict, "stale_token")

	saved := ann.save("r", token, "first")
	require.Equal(t, http.StatusOK, saved.status, string(saved.text))
	assert.Equal(t, true, saved.body["success"])
	assert.WithinDuration(t, time.Now(), saved.time(t, "saved_at"), 10*time.Second)
	read := bob.do("GET", contentOf("r"), nil)
	assert.Equal(t, "first", string(read.text))
	assert.Equal(t, saved.body["etag"], read.header.Get("ETag"))
	assert.Equal(t, token, mustInt(t, read.header.Get(remote.HeaderToken)))
	assert.Contains(t, read.header.Get("Content-Security-Policy"), "sandbox")
	assert.Equal(t, http.StatusNotModified, bob.with("If-None-Match", read.header.Get("ETag")).do("GET", contentOf("r"), nil).status)

	// After a successor came, the old token is stale, for good.
	ann.do("DELETE", lockOf("r"), nil)
	assertError(t, ann.save("r", token, "late"), http.StatusConflict, "stale_token")
	newer := bob.lock("r")
	assertError(t, ann.save("r", token, "late"), http.StatusConflict, "stale_token")
	assertError(t, ann.save("r", newer, "stolen"), http.StatusForbidden, "not_locked_by_user")
	assert.Equal(t, http.StatusOK, bob.save("r", newer, "").status, "emptied")
	assert.Empty(t, bob.do("GET", contentOf("r"), nil).text)
}

func TestContentOfEverySize(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	token := ann.lock("r")
	const limit = 8 << 20
	for _, size := range []int{1, 1<<20 - 1, 1 << 20, 1<<20 + 1, 3 << 20, limit} {
		data := strings.Repeat("0123456789abcde\n", size/16+1)[:size]
		require.Equal(t, http.StatusOK, ann.save("r", token, data).status, size)
		require.Equal(t, data, string(ann.do("GET", contentOf("r"), nil).text), size)
	}
	assertError(t, ann.save("r", token, strings.Repeat("x", limit+1)), http.StatusRequestEntityTooLarge, "too_large")
	assert.Len(t, ann.do("GET", contentOf("r"), nil).text, limit, "the old content is still there")
	entries, _, err := s.Store().Range(t.Context(), "content/")
	require.NoError(t, err)
	require.Len(t, entries, 1)
	assert.Less(t, len(entries[0].Value), 2000, "the store has names alone")
}

// The state diagram of a lock: none, held, held again by heartbeats, released or run out.
func TestStateDiagram(t *testing.T) {
	t.Parallel()
	s := start(t, short)
	ann := s.as(t, "ann")
	isLocked := func() bool { return ann.do("GET", lockOf("r"), nil).body["is_locked"].(bool) }
	assert.False(t, isLocked())
	_, extended := lockNow(ann, "r")
	for range 5 { // heartbeats keep it far beyond its time
		time.Sleep(shortBeat)
		extended, _ = beat(t, ann, extended)
		locked := isLocked()
		inTime(t, extended)
		assert.True(t, locked)
	}
	ann.do("DELETE", lockOf("r"), nil)
	assert.False(t, isLocked())
	ann.lock("r")
	require.Eventually(t, func() bool { return !isLocked() }, shortTTL+5*time.Second, 20*time.Millisecond)
	assertError(t, ann.do("PUT", lockOf("r"), nil), http.StatusNotFound, "lock_not_found")
}

// A document's id may spell bytes that are no text. Its lock is extended and released like any other, and it blocks nobody
// longer than its holder wants.
func TestLockOnADocumentWhoseIDIsNoText(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.LockTTL = shortTTL })
	ann, bob := s.as(t, "ann"), s.as(t, "bob")
	const id = "plan~.~FF"
	for range 2 {
		token := ann.lock(id)
		assert.Equal(t, http.StatusOK, ann.do("PUT", lockOf(id), nil).status)
		assert.Equal(t, http.StatusOK, ann.save(id, token, "x").status)
		assert.Equal(t, http.StatusOK, ann.do("DELETE", lockOf(id), nil).status)
		assert.Equal(t, false, bob.do("GET", lockOf(id), nil).body["is_locked"])
	}
	ann.lock(id) // and leaves it
	assert.Equal(t, http.StatusOK, bob.do("POST", lockOf(id)+"?wait_ms=30000", nil).status)
}

// A path with an empty id names nothing. A redirect would send the release of that document's lock on as the deletion of another one.
func TestEmptyIDLeadsToNoOtherDocument(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	token := ann.lock("lock")
	require.Equal(t, http.StatusOK, ann.save("lock", token, "text").status)
	for _, path := range []string{"/api/documents//lock", "/api//documents/lock"} {
		assertError(t, ann.withToken(token).do("DELETE", path, nil), http.StatusNotFound, "not_found")
	}
	assert.Equal(t, "text", string(ann.do("GET", contentOf("lock"), nil).text))
}
