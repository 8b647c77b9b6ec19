package dav

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/sessions"
	"github.com/holdfast-dev/holdfast/server/users"
)

// The lock on the members, of the program itself or of a PROPPATCH, ends just before the transaction that adds a file, and another program
// locks them. Its LOCK waits for the change, see TestALockOnTheMembersWaitsForTheirChanges, so the change goes on.
func TestAChangeGoesOnAfterALaterLockOnTheMembers(t *testing.T) {
	t.Parallel()
	for holder, note := range map[string]string{"ann1": noteOwn, "bob": noteChange} {
		s := newWaited(t)
		s.Contents = s.handler(s.interrupted, s.uninterrupted).Contents
		first := s.acquire(holder, place{"d"}.members(), note)
		s.before = func() {
			s.unlock(first)
			s.lock("bob", place{"d"}.members())
		}
		answer := s.answer("PUT", "/dav/d/new", "text", "If", "</dav/d/> (<"+tokenOf(first)+">) (Not <DAV:no-lock>)")
		assert.Equal(t, http.StatusCreated, answer.Code, answer.Body.String())
		assert.NotEmpty(t, s.tag("d~.new"))
	}
}

// A file goes while a PUT waits to replace it, and another program locks the members of its collection. The PUT would add a member.
func TestAFileIsNotMadeAgainUnderAForeignLockOnTheMembers(t *testing.T) {
	t.Parallel()
	s := newWaited(t)
	r := httptest.NewRequestWithContext(t.Context(), "PUT", "/dav/d/x", strings.NewReader("text"))
	answer := s.answerAfter(r, func(s *waited) {
		s.remove("d~.x")
		s.lock("bob", place{"d"}.members())
	})
	assert.Equal(t, http.StatusLocked, answer.Code, answer.Body.String())
}

// Somebody locks a path below that of the members. No lock of a member is there, so members are added and removed. Otherwise each request would
// try again for as long as its client waits.
func TestALockBelowThePathOfTheMembersDelaysNoChange(t *testing.T) {
	t.Parallel()
	for _, request := range []string{"PUT /dav/d/new", "MKCOL /dav/d/new", "DELETE /dav/d/x"} {
		s := newWaited(t)
		s.lock("bob", append(place{"d"}.members(), "file"))
		method, path, _ := strings.Cut(request, " ")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		answer := httptest.NewRecorder()
		s.serveAnn(answer, httptest.NewRequestWithContext(ctx, method, path, nil))
		assert.Less(t, answer.Code, 300, "%s: %s", request, answer.Body)
	}
}

// The lock on the members ends just before the transaction that makes a collection, and nobody acquires it. The collection is made, as
// without that lock.
func TestACollectionIsMadeWhenTheLockOnTheMembersEnds(t *testing.T) {
	t.Parallel()
	s := newWaited(t)
	s.Store = s.interrupted
	own := s.lock("ann1", place{"d"}.members())
	s.before = func() { s.unlock(own) }
	answer := s.answer("MKCOL", "/dav/d/new", "", "If", "</dav/d/> (<"+tokenOf(own)+">)")
	require.Equal(t, http.StatusCreated, answer.Code, answer.Body.String())
	made, _, err := s.Store.Get(t.Context(), dirPrefix+"d~.new")
	require.NoError(t, err)
	assert.True(t, made.Found())
}

// Another program sets a property of the collection, which locks its members for a moment. The members do not change, so a change
// of one of them neither waits nor fails.
func TestMembersChangeDuringAPROPPATCHOfTheCollection(t *testing.T) {
	t.Parallel()
	for request, ends := range map[string]bool{"PUT /dav/d/new": false, "MKCOL /dav/d/new": true, "DELETE /dav/d/x": false} {
		s := newWaited(t)
		s.Store = s.interrupted
		patch := s.acquire("bob", place{"d"}.members(), noteChange)
		if ends {
			s.before = func() { s.unlock(patch) }
		}
		method, path, _ := strings.Cut(request, " ")
		answer := s.answer(method, path, "")
		assert.Less(t, answer.Code, 300, "%s: %s", request, answer.Body)
		assert.NotEqual(t, ends, s.stands(patch))
	}
}

// A program locks the members of a collection while a change of a collection in it is half done. The change does not stop in the middle.
func TestAChangeGoesOnWhenTheMembersAroundItAreLocked(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ method, locked string }{{"MOVE", "to"}, {"COPY", "to"}, {"MOVE", "from"}} {
		s := newWaited(t)
		require.Equal(t, http.StatusCreated, s.answer("MKCOL", "/dav/to", "").Code)
		require.Equal(t, http.StatusCreated, s.answer("MKCOL", "/dav/from", "").Code)
		require.Equal(t, http.StatusCreated, s.answer("MOVE", "/dav/d", "", "Destination", "/dav/from/d").Code)
		s.Contents = s.handler(s.interrupted, s.uninterrupted).Contents
		s.before = func() { s.lock("bob", place{tt.locked}.members()) }
		answer := s.answer(tt.method, "/dav/from/d", "", "Destination", "/dav/to/d")
		assert.Equal(t, http.StatusCreated, answer.Code, "%v: %s", tt, answer.Body)
		assert.NotEmpty(t, s.tag("to~.d~.x"))
		assert.NotEmpty(t, s.tag("to~.d~.y"))
	}
}

// A change of a member has begun, such as a MOVE that replaces a collection. LOCK waits for its end. The lock of a program on another
// member does not matter.
func TestALockOnTheMembersWaitsForTheirChanges(t *testing.T) {
	t.Parallel()
	s := newWaited(t)
	s.lock("bob", place{"d", "y"}.path())
	change := s.acquire("root", place{"d", "x"}.path(), noteChange)
	ctx, leave := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer leave()
	lock := func(ctx context.Context) int {
		r := httptest.NewRequestWithContext(ctx, "LOCK", "/dav/d", strings.NewReader(lockBody))
		r.Header.Set("Depth", "0")
		answer := httptest.NewRecorder()
		s.serveAnn(answer, r)
		return answer.Code
	}
	assert.Equal(t, http.StatusServiceUnavailable, lock(ctx), "it waits until its client leaves")
	s.unlock(change)
	assert.Equal(t, http.StatusOK, lock(t.Context()))
}

// A program locks the members of a collection after a change has looked at the locks, and before it acquires its own. The change is refused as
// a whole, and not once for each file.
func TestAChangeDoesNotBeginAfterAnEarlierLockOnTheMembers(t *testing.T) {
	t.Parallel()
	s := newWaited(t)
	require.Equal(t, http.StatusCreated, s.answer("MKCOL", "/dav/c", "").Code)
	require.Equal(t, http.StatusCreated, s.answer("MOVE", "/dav/d", "", "Destination", "/dav/c/d").Code)
	s.lock("bob", place{"c"}.members())
	p := place{"c", "d"}
	r := httptest.NewRequestWithContext(t.Context(), "DELETE", "/dav/c/d", nil)
	session := sessions.Session{HolderID: "ann1", User: users.User{Name: "ann"}}
	g := &right{Handler: s.Handler, call: &call{r: r, session: session}, place: p, scope: theEntry,
		lease: s.acquire("ann1", p.path(), noteChange), own: true, since: time.Now(), ttl: time.Hour}
	failed, err := g.removeAll(t.Context(), node{place: p, kind: collection}, nil)
	require.Error(t, err)
	assert.Equal(t, http.StatusLocked, statusOf(err))
	assert.Empty(t, failed)
	assert.NotEmpty(t, s.tag("c~.d~.x"))

	target := node{place: place{"c", "e"}}
	_, err = s.carryOut(&transfer{call: g.call, from: node{place: p, kind: collection}, to: target, move: true, source: g, target: g})
	require.Error(t, err)
	assert.Equal(t, http.StatusLocked, statusOf(err))
}
