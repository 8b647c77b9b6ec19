package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
)

// secretRules hide the document "secret" from everybody but root. Bob may read and lock the rest, Ann may write it too.
const secretRules = `
	user:root      *                 admin
	anyone         documents/secret
	anyone         documents/a/secret
	anyone         rooms/hidden
	group:editors  *                 read lock write max-ttl=10s
	signed-in      *                 read lock
`

// every are requests about a document, or about a place.
func every(document string) map[string]func(client) answer {
	path, list := "/api/documents/"+document, map[string]func(client) answer{}
	for _, call := range []string{
		"POST lock", "PUT lock", "DELETE lock", "GET lock", "GET content", "GET history", "POST lock/ask", "POST lock/accept", "POST lock/refuse", "DELETE ",
		"GET events", "PUT content", "GET content?generation=x", "POST lock?wait_ms=10",
	} {
		var method, rest string
		_, _ = fmt.Sscan(call, &method, &rest)
		if rest != "" {
			rest = "/" + rest
		}
		list[call] = func(c client) answer { return c.with(remote.HeaderToken, "7").do(method, path+rest, nil) }
	}
	list["GET locks"] = func(c client) answer { return c.do("GET", "/api/locks?path=documents/"+document, nil) }
	list["POST locks"] = func(c client) answer {
		return c.do("POST", "/api/locks", map[string]any{"paths": [][]string{{"open"}, {"documents", document}}})
	}
	list["POST locks below"] = func(c client) answer {
		return c.do("POST", "/api/locks", map[string]any{"paths": [][]string{{"documents", document, "below"}}, "mode": "shared"})
	}
	return list
}

// Nothing tells a document that one may not read from one that does not exist.
func TestAHiddenDocumentIsLikeNone(t *testing.T) {
	t.Parallel()
	hidden, none := startWithUsers(t, secretRules), startWithUsers(t, secretRules)
	root := hidden.as(t, "root-key")
	locked := root.do("POST", lockOf("secret"), nil)
	require.Equal(t, http.StatusOK, locked.status)
	saved := root.with(remote.HeaderToken, fmt.Sprint(int64(locked.body["token"].(float64)))).do("PUT", "/api/documents/secret/content", nil)
	require.Equal(t, http.StatusOK, saved.status, string(saved.text))

	for name, call := range every("secret") {
		for _, who := range []string{"ann-key", "bob-key", ""} {
			there, absent := call(hidden.as(t, who)), call(none.as(t, who))
			assert.Equal(t, absent.status, there.status, "%s %s", who, name)
			assert.Equal(t, string(absent.text), string(there.text), "%s %s", who, name)
			if who == "" {
				assertError(t, there, http.StatusUnauthorized, "unauthenticated")
			} else {
				assertError(t, there, http.StatusForbidden, "not_allowed")
			}
			there.header.Del("Date")
			absent.header.Del("Date")
			there.header.Del("Set-Cookie")
			absent.header.Del("Set-Cookie")
			assert.Equal(t, absent.header, there.header, "%s %s", who, name)
		}
	}
}

// Listings leave out what one may not read, and no page tells of it by its length or its cursor.
func TestListingsLeaveOutWhatIsHidden(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t, secretRules)
	root, bob := s.as(t, "root-key"), s.as(t, "bob-key")
	for _, id := range []string{"a", "secret", "z"} {
		token := root.do("POST", lockOf(id), nil).body["token"].(float64)
		require.Equal(t, http.StatusOK, root.with(remote.HeaderToken, fmt.Sprint(int64(token))).do("PUT", "/api/documents/"+id+"/content", nil).status)
		require.Equal(t, http.StatusOK, root.do("DELETE", lockOf(id), nil).status)
	}
	both := root.do("POST", "/api/locks", map[string]any{"paths": [][]string{{"documents", "secret", "x"}, {"place"}}, "ttl_ms": 60000})
	require.Equal(t, http.StatusOK, both.status, string(both.text))

	below := root.do("POST", "/api/locks", map[string]any{"paths": [][]string{{"documents", "a", "secret"}}, "ttl_ms": 60000})
	require.Equal(t, http.StatusOK, below.status, string(below.text))
	assert.Equal(t, true, root.do("GET", lockOf("a"), nil).body["is_locked"])
	assert.JSONEq(t, `{"is_locked": false}`, string(bob.do("GET", lockOf("a"), nil).text), "a lock below the document is hidden")

	var names []string
	for after, pages := "", 0; pages < 5; pages++ {
		page := bob.do("GET", "/api/documents?limit=1&after="+after, nil)
		for _, d := range page.body["documents"].([]any) {
			names = append(names, d.(map[string]any)["document"].(string))
			assert.Equal(t, false, d.(map[string]any)["is_locked"])
		}
		if after, _ = page.body["next"].(string); after == "" {
			break
		}
		assert.NotEqual(t, "secret", after)
	}
	assert.Equal(t, []string{"a", "z"}, names)

	holders := func(c client, path string) string {
		text, err := json.Marshal(c.do("GET", "/api/locks?path="+path, nil).body["holders"])
		require.NoError(t, err)
		return string(text)
	}
	assert.Contains(t, holders(root, "documents"), "secret")
	assert.NotContains(t, holders(bob, "documents"), "secret")
	assert.Contains(t, holders(bob, "place"), `"paths":[["place"]]`, "the other path of that lock is hidden")
	denied := bob.do("POST", "/api/locks", map[string]any{"paths": [][]string{{"place"}}})
	assertError(t, denied, http.StatusConflict, "acquire_denied")
	assert.NotContains(t, string(denied.text), "secret")
}

func TestLocksOnPlacesNeedThePermissionBelow(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t, secretRules)
	ann := s.as(t, "ann-key")
	lock := func(c client, ttl int, path ...string) answer {
		return c.do("POST", "/api/locks", map[string]any{"paths": [][]string{path}, "ttl_ms": ttl})
	}
	assertError(t, lock(ann, 5000, "documents"), http.StatusForbidden, "not_allowed")
	assertError(t, lock(ann, 20000, "place"), http.StatusForbidden, "not_allowed")
	require.Equal(t, http.StatusOK, lock(ann, 10000, "place").status)
	granted := ann.do("POST", lockOf("r"), nil)
	require.Equal(t, http.StatusOK, granted.status)
	assert.LessOrEqual(t, time.Until(granted.time(t, "expires_at")), 10*time.Second, "the longest she may have")
	require.Equal(t, http.StatusOK, ann.do("DELETE", lockOf("r"), nil).status)
	require.Equal(t, http.StatusOK, ann.do("DELETE", "/api/locks/"+lockID(t, s, ann), nil).status)
	assert.Equal(t, http.StatusOK, lock(s.as(t, "root-key"), 20000, "documents").status, "all documents at once is for an administrator")
}

// A session that meets the lock of a place above, which it may not read, gets no name of the holder.
func TestADeniedLockNamesNoHiddenHolder(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t, "user:root * admin\nuser:bob documents/r read lock\nuser:ann * read lock")
	root, bob := s.as(t, "root-key"), s.as(t, "bob-key")
	above := root.do("POST", "/api/locks", map[string]any{"paths": [][]string{{"documents"}}})
	require.Equal(t, http.StatusOK, above.status, string(above.text))
	place := map[string]any{"paths": [][]string{{"documents", "r"}}}
	for _, denied := range []answer{
		bob.do("POST", lockOf("r"), nil), bob.do("POST", lockOf("r")+"?wait_ms=1", nil), bob.do("POST", "/api/locks", place),
	} {
		require.Equal(t, http.StatusConflict, denied.status, string(denied.text))
		assert.NotContains(t, string(denied.text), "root")
	}
	place["wait_ms"] = 1
	denied := bob.do("POST", "/api/locks", place)
	assertError(t, denied, http.StatusRequestTimeout, "acquire_timeout")
	assert.NotContains(t, string(denied.text), "root")
	assert.Equal(t, "root", s.as(t, "ann-key").do("POST", lockOf("r"), nil).body["holder_name"])
}

// lockID locks a place and returns the lease's id.
func lockID(t *testing.T, s *instance, c client) string {
	t.Helper()
	id, _ := c.do("POST", "/api/locks", map[string]any{"paths": [][]string{{"other"}}, "ttl_ms": 5000}).body["lease_id"].(string)
	require.NotEmpty(t, id)
	return id
}

// Writing needs more than locking, and rooms know permissions too.
func TestPermissionsOfWritersAndRooms(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t, secretRules)
	bob, ann := s.as(t, "bob-key"), s.as(t, "ann-key")
	token := bob.do("POST", lockOf("r"), nil).body["token"]
	refused := bob.with(remote.HeaderToken, fmt.Sprint(token)).do("PUT", "/api/documents/r/content", nil)
	assertError(t, refused, http.StatusForbidden, "not_allowed")

	enter := func(c client) *visitor {
		conn, _, err := websocket.Dial(t.Context(), s.URL+"/ws", &websocket.DialOptions{
			HTTPHeader: http.Header{"Authorization": {"Bearer " + c.secret}}})
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.CloseNow() })
		v := &visitor{t: t, conn: conn}
		v.token = v.next("connected")["userToken"]
		return v
	}
	a, b := enter(ann), enter(bob)
	a.send(map[string]any{"type": "createRoom", "userName": "Ann"})
	room := a.next("roomCreated")["roomId"]
	b.send(map[string]any{"type": "isExistTheRoom", "roomId": room})
	assert.Equal(t, true, b.next("isExistTheRoomResult")["isExistTheRoom"])
	for _, id := range []any{room, "00000000-0000-4000-8000-000000000000"} {
		b.send(map[string]any{"type": "enterTheRoom", "userName": "Bob", "roomId": id})
		assert.Equal(t, "not_allowed", b.next("error")["error"], "he may not write")
	}
	_, response, err := websocket.Dial(t.Context(), s.URL+"/ws", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer nobody"}}})
	require.Error(t, err)
	assert.Equal(t, http.StatusUnauthorized, response.StatusCode)
}
