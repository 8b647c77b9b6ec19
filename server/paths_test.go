package server_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server"
)

func mustInt(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return n
}

type object = map[string]any

// A listing comes in pages of the size that the client asks for.
func TestListingsComeInPages(t *testing.T) {
	t.Parallel()
	ann := start(t, nil).as(t, "ann")
	for i := range 5 {
		require.Equal(t, http.StatusOK, ann.do("POST", "/api/locks", object{"paths": [][]string{{"u", strconv.Itoa(i)}}}).status)
	}
	var tokens []float64
	var sizes []int
	for after := ""; ; {
		page := ann.do("GET", "/api/locks?path=u&limit=2&after="+after, nil)
		require.Equal(t, http.StatusOK, page.status, string(page.text))
		for _, h := range page.body["holders"].([]any) {
			tokens = append(tokens, h.(object)["token"].(float64))
		}
		sizes = append(sizes, len(page.body["holders"].([]any)))
		next, more := page.body["next"].(string)
		if after = next; !more {
			break
		}
	}
	assert.Equal(t, []int{2, 2, 1}, sizes)
	assert.True(t, slices.IsSorted(tokens))
	for _, bad := range []string{"limit=0", "limit=x", "limit=1001", "after=x", "after=h1."} {
		assertError(t, ann.do("GET", "/api/locks?path=u&"+bad, nil), http.StatusBadRequest, "invalid_request")
	}
}

// The calls for locks on paths, row by row.
func TestPathLocks(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann, bob := s.as(t, "ann"), s.as(t, "bob")
	const ttl = time.Minute
	before := time.Now().Truncate(time.Millisecond)
	taken := ann.do("POST", "/api/locks", object{"paths": [][]string{{"u1", "a1"}}, "ttl_ms": ttl.Milliseconds(), "holder_name": "Ann"})
	require.Equal(t, http.StatusOK, taken.status, string(taken.text))
	assert.WithinRange(t, taken.time(t, "expires_at"), before.Add(ttl), time.Now().Add(ttl))
	assert.Equal(t, float64(0), taken.body["slot"])
	assert.Positive(t, taken.token())
	lease := "/api/locks/" + taken.body["lease_id"].(string)

	denied := bob.do("POST", "/api/locks", object{"paths": [][]string{{"u1"}}})
	assertError(t, denied, http.StatusConflict, "acquire_denied")
	holders := denied.body["holders"].([]any)
	require.Len(t, holders, 1)
	assert.Equal(t, "Ann", holders[0].(object)["holder_name"])
	late := bob.do("POST", "/api/locks", object{"paths": [][]string{{"u1", "a1", "r1"}}, "wait_ms": 50})
	assertError(t, late, http.StatusRequestTimeout, "acquire_timeout")

	assert.Equal(t, http.StatusOK, ann.do("PUT", lease, nil).status)
	assertError(t, bob.do("PUT", lease, nil), http.StatusForbidden, "not_locked_by_user")
	assertError(t, bob.do("DELETE", lease, nil), http.StatusForbidden, "not_locked_by_user")
	assertError(t, ann.do("PUT", "/api/locks/nonsense", nil), http.StatusNotFound, "lock_not_found")
	assert.Equal(t, http.StatusOK, ann.do("DELETE", "/api/locks/nonsense", nil).status)

	shown := bob.do("GET", "/api/locks?path=u1", nil)
	assert.Len(t, shown.body["holders"], 1)
	assert.Empty(t, shown.body["waiters"])
	assert.Empty(t, bob.do("GET", "/api/locks?path=u2/a%2Fb", nil).body["holders"])

	assert.Equal(t, http.StatusOK, ann.do("DELETE", lease, nil).status)
	assertError(t, ann.do("PUT", lease, nil), http.StatusNotFound, "lock_not_found")
}

// Each of the paths is as long as it may be; together they are more than the store takes at once.
func TestTooManyLongPaths(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	var paths [][]string
	for i := range 16 {
		above := slices.Repeat([]string{strings.Repeat("ü", 64)}, 15)
		paths = append(paths, append(above, strconv.Itoa(i)))
	}
	assertError(t, s.as(t, "ann").do("POST", "/api/locks", object{"paths": paths}), http.StatusBadRequest, "invalid_request")
}

func TestSlotsOverHTTP(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for i := range 3 {
		a := s.as(t, "c"+strconv.Itoa(i)).do("POST", "/api/locks", object{"paths": [][]string{{"pool"}}, "slots": 3})
		require.Equal(t, http.StatusOK, a.status)
		assert.Equal(t, float64(i), a.body["slot"])
	}
	a := s.as(t, "late").do("POST", "/api/locks", object{"paths": [][]string{{"pool"}}, "slots": 3})
	assertError(t, a, http.StatusConflict, "acquire_denied")
	assert.Len(t, a.body["holders"], 3)
}

func TestSharedOverHTTP(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	body := object{"paths": [][]string{{"doc"}}, "mode": "shared"}
	assert.Equal(t, http.StatusOK, s.as(t, "a").do("POST", "/api/locks", body).status)
	assert.Equal(t, http.StatusOK, s.as(t, "b").do("POST", "/api/locks", body).status)
	assertError(t, s.as(t, "c").do("POST", "/api/locks", object{"paths": [][]string{{"doc"}}}), http.StatusConflict, "acquire_denied")
}

// A shared lock, or one of a place below, keeps others from locking a document. The answer says which lock it is, and there are no events of it:
// the end of one of several would not tell that the document is free.
func TestOtherLocksInTheWayOfADocument(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann, bob := s.as(t, "ann"), s.as(t, "bob")
	for _, other := range []object{
		{"paths": [][]string{{"documents", "r"}}, "mode": "shared"},
		{"paths": [][]string{{"documents", "r", "chapter"}}, "mode": "exclusive"},
	} {
		taken := ann.do("POST", "/api/locks", other)
		require.Equal(t, http.StatusOK, taken.status, string(taken.text))
		shown := bob.do("GET", lockOf("r"), nil).body
		assert.Equal(t, true, shown["is_locked"])
		assert.Equal(t, other["mode"], shown["mode"])
		assert.Len(t, shown["paths"], 1)
		events, err := s.Store().Keys(t.Context(), "events/")
		require.NoError(t, err)
		assert.NotContains(t, events, "events/r")
		require.Equal(t, http.StatusOK, ann.do("DELETE", "/api/locks/"+taken.body["lease_id"].(string), nil).status)
		assert.Equal(t, false, bob.do("GET", lockOf("r"), nil).body["is_locked"])
	}
	ann.lock("r")
	assert.NotContains(t, bob.do("GET", lockOf("r"), nil).body, "paths", "its own lock")
}

// The document's lock is the path documents/{document}.
func TestADocumentIsAPath(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.LockAll = true })
	ann, bob := s.as(t, "ann"), s.as(t, "bob")
	ann.lock("r")
	for _, path := range [][]string{{"documents", "r"}, {"documents"}, {"documents", "r", "chapter"}} {
		assertError(t, bob.do("POST", "/api/locks", object{"paths": [][]string{path}}), http.StatusConflict, "acquire_denied")
	}
	ann.do("DELETE", lockOf("r"), nil)
	all := bob.do("POST", "/api/locks", object{"paths": [][]string{{"documents"}}, "holder_name": "Bob"})
	require.Equal(t, http.StatusOK, all.status)
	denied := ann.do("POST", lockOf("r"), nil)
	assertError(t, denied, http.StatusConflict, "already_locked")
	assert.Equal(t, "Bob", denied.body["holder_name"])
	assert.Equal(t, true, ann.do("GET", lockOf("r"), nil).body["is_locked"])
}

func TestRequestThatClosesACycleGetsDeadlock(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann, bob := s.as(t, "ann"), s.as(t, "bob")
	for c, path := range map[string]string{"ann": "p", "bob": "q"} {
		require.Equal(t, http.StatusOK, s.as(t, c).do("POST", "/api/locks", object{"paths": [][]string{{path}}}).status)
	}
	got := make(chan answer, 1)
	go func() {
		a, err := ann.try(t.Context(), "POST", "/api/locks", object{"paths": [][]string{{"q"}}, "wait_ms": 3000})
		assert.NoError(t, err)
		got <- a
	}()
	bob.seesWaiting("q", 1)
	assertError(t, bob.do("POST", "/api/locks", object{"paths": [][]string{{"p"}}, "wait_ms": 3000}), http.StatusConflict, "deadlock")
	assertError(t, <-got, http.StatusRequestTimeout, "acquire_timeout")
}

func TestMalformedRequests(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	for _, body := range []any{
		"", "{", "[]", "null1", `"x"`, object{}, object{"paths": "x"}, object{"paths": [][]string{}}, object{"paths": [][]string{{}}},
		object{"paths": [][]string{{""}}}, object{"paths": [][]string{{strings.Repeat("x", 129)}}},
		object{"paths": [][]string{{"a"}}, "mode": "both"}, object{"paths": [][]string{{"a"}}, "slots": 0},
		object{"paths": [][]string{{"a"}}, "slots": 1001}, object{"paths": [][]string{{"a"}}, "ttl_ms": 0},
		object{"paths": [][]string{{"a"}}, "ttl_ms": 1e9}, object{"paths": [][]string{{"a"}}, "wait_ms": -1},
		object{"paths": [][]string{{"a"}}, "wait_ms": 60001}, object{"paths": [][]string{{"a"}}, "holder_name": ""},
		object{"paths": [][]string{{"a"}}, "holder_name": strings.Repeat("é", 65)},
	} {
		assertError(t, ann.do("POST", "/api/locks", body), http.StatusBadRequest, "invalid_request")
	}
	for _, body := range []any{"{", object{"holder_name": ""}, object{"holder_name": "a\nb"}, object{"holder_name": 7}} {
		assertError(t, ann.do("POST", lockOf("r"), body), http.StatusBadRequest, "invalid_request")
	}
	assert.Equal(t, http.StatusOK, ann.do("POST", lockOf("r"), object{"holder_name": strings.Repeat("é", 64)}).status)
	assertError(t, ann.do("POST", lockOf("r"), `{"x":"`+strings.Repeat("x", 70<<10)+`"}`), http.StatusRequestEntityTooLarge, "too_large")
	assertError(t, ann.do("GET", "/api/locks", nil), http.StatusBadRequest, "invalid_request")
	assertError(t, ann.do("GET", "/api/locks?path=a//b", nil), http.StatusBadRequest, "invalid_request")
	assertError(t, ann.do("GET", "/api/locks?path=a%25zz", nil), http.StatusBadRequest, "invalid_request")
	for _, after := range []string{"-1", "x", ""} {
		assertError(t, ann.do("GET", "/api/documents/r/events?after="+after, nil), http.StatusBadRequest, "invalid_request")
	}
	assertError(t, ann.do("GET", "/api/nothing", nil), http.StatusNotFound, "not_found")
	assertError(t, ann.do("PATCH", lockOf("r"), nil), http.StatusMethodNotAllowed, "method_not_allowed")
}
