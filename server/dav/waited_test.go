package dav

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/policy"
	"github.com/holdfast-dev/holdfast/server/sessions"
	"github.com/holdfast-dev/holdfast/server/users"
)

// lockBody asks for an exclusive lock.
const lockBody = `<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>`

// A request waits for the lock of another change, which makes another thing of the place. The request gets the answer of
// one that comes after that change.
func TestARequestThatHasWaitedChecksAgain(t *testing.T) {
	t.Parallel()
	memberAppears := func(s *waited) { s.save("a~.b") }
	collectionGoes := func(s *waited) { s.remove("d~.x"); s.remove("d~.y") }
	for name, tt := range map[string]struct {
		request, header, body string // the header as "Name value"
		change                func(*waited)
		status                int
	}{
		"DELETE of what is now a collection with a member that stays": {"DELETE /dav/a", "", "", memberAppears, http.StatusForbidden},
		"MOVE of it":                          {"MOVE /dav/a", "Destination /dav/c", "", memberAppears, http.StatusForbidden},
		"COPY over it":                        {"COPY /dav/o", "Destination /dav/a", "", memberAppears, http.StatusForbidden},
		"DELETE of a collection with Depth 0": {"DELETE /dav/o", "Depth 0", "", func(s *waited) { s.save("o~.b") }, http.StatusBadRequest},
		"PUT over a collection":               {"PUT /dav/a", "", "text", memberAppears, http.StatusMethodNotAllowed},
		"LOCK of a collection with Depth 0":   {"LOCK /dav/o", "Depth 0", lockBody, func(s *waited) { s.save("o~.b") }, http.StatusOK},
		"LOCK of another content":             {"LOCK /dav/a", "If-Match ETAG", lockBody, func(s *waited) { s.save("a") }, http.StatusPreconditionFailed},
		"LOCK of a file that has gone":        {"LOCK /dav/a", "", lockBody, func(s *waited) { s.remove("a") }, http.StatusCreated},
		"LOCK in a collection that has gone":  {"LOCK /dav/d/x", "", lockBody, collectionGoes, http.StatusConflict},
		"LOCK of no file there":               {"LOCK /dav/d/z", "", lockBody, collectionGoes, http.StatusConflict},
		"PUT in a collection that has gone":   {"PUT /dav/d/x", "", "text", collectionGoes, http.StatusConflict},
		"MKCOL in a collection that has gone": {"MKCOL /dav/d/z", "", "", collectionGoes, http.StatusConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newWaited(t)
			method, path, _ := strings.Cut(tt.request, " ")
			r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(tt.body))
			if key, value, ok := strings.Cut(tt.header, " "); ok {
				r.Header.Set(key, strings.Replace(value, "ETAG", s.tag("a"), 1))
			}
			answer := s.answerAfter(r, tt.change)
			assert.Equal(t, tt.status, answer.Code, answer.Body.String())
			if answer.Code == http.StatusForbidden {
				assert.NotEmpty(t, s.tag("a~.b"), "it stays")
			}
			if method == "LOCK" {
				lease, _, err := s.table.At(t.Context(), locks.Path{root, "o", membersMark})
				require.NoError(t, err)
				assert.Equal(t, answer.Code == http.StatusOK, lease.Token != 0, "the members of o are locked")
				all, _, err := s.table.Inspect(t.Context(), locks.Path{root})
				require.NoError(t, err)
				assert.Len(t, all, map[bool]int{true: 1}[answer.Code < 300])
			}
		})
	}
}

// A COPY or MOVE names the entity tag of the destination and waits. The content that it would replace is another one afterwards.
func TestADestinationThatHasChangedMeanwhileStays(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"COPY", "MOVE"} {
		s := newWaited(t)
		r := httptest.NewRequestWithContext(t.Context(), method, "/dav/o", nil)
		r.Header.Set("Destination", "/dav/a")
		r.Header.Set("If", "</dav/a> (["+s.tag("a")+"])")
		later := ""
		answer := s.answerAfter(r, func(s *waited) { s.save("a"); later = s.tag("a") })
		assert.Equal(t, http.StatusPreconditionFailed, answer.Code, method)
		assert.Equal(t, later, s.tag("a"), method)
		assert.NotEmpty(t, s.tag("o"), method)
	}
}

// waited is a handler beside the change of another program.
type waited struct {
	*interruptedStore
	*Handler
}

// newWaited returns a handler with some files. Ann may write everything but the file a/b.
func newWaited(t *testing.T) *waited {
	s := newInterruptedStore(t)
	rules, err := policy.Parse([]byte("user:root * admin\n anyone documents/a/b read lock\n anyone * read lock write\n"))
	require.NoError(t, err)
	s.api.Policy = func() *policy.Policy { return rules }
	s.api.WriteLimit = time.Minute
	w := &waited{s, s.handler(s.uninterrupted, s.uninterrupted)}
	w.MaxContent, s.api.MaxContent = 1<<20, 1<<20
	for _, id := range []string{"a", "o", "d~.x", "d~.y"} {
		w.save(id)
	}
	return w
}

// answerAfter sends a request of Ann's, which waits for the lock of a change, makes the change and returns the answer.
func (s *waited) answerAfter(r *http.Request, change func(*waited)) *httptest.ResponseRecorder {
	var leases []locks.Lease
	for _, path := range []locks.Path{{root, "a", "z"}, {root, "o", "z"}, {root, "d", "x"}, {root, "d", "z"}} {
		leases = append(leases, s.acquire("root", path, noteChange))
	}
	answer, answered := httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(answered)
		s.serveAnn(answer, r)
	}()
	require.Eventually(s.t, func() bool {
		_, waiters, err := s.table.Inspect(s.t.Context(), locks.Path{root})
		return err == nil && len(waiters) == 1
	}, 10*time.Second, time.Millisecond)
	change(s)
	for _, lease := range leases {
		s.unlock(lease)
	}
	<-answered
	return answer
}

// free is the right to change anything.
var free = content.Right{Fence: func(context.Context) ([]kv.Cond, error) { return nil, nil }}

// save and remove change a document without a lock, as an administrator does.
func (s *waited) save(id string) {
	_, err := s.Contents.WriteUnder(s.t.Context(), id, free, content.Save{}, nil, []byte(time.Now().String()))
	require.NoError(s.t, err)
}

func (s *waited) remove(id string) {
	require.NoError(s.t, s.Contents.DeleteUnder(s.t.Context(), id, free, content.Save{}, nil))
}

func (s *waited) tag(id string) string {
	found, err := s.Contents.Find(s.t.Context(), id, "")
	require.NoError(s.t, err)
	return found.ETag
}

// answer sends a request of Ann's, with headers as names and values.
func (s *waited) answer(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(s.t.Context(), method, path, strings.NewReader(body))
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	answer := httptest.NewRecorder()
	s.serveAnn(answer, r)
	return answer
}

func (s *waited) serveAnn(w http.ResponseWriter, r *http.Request) {
	session := sessions.Session{HolderID: "ann1", User: users.User{Name: "ann"}}
	if err := s.serve(&call{w: w, r: r, session: session}); err != nil {
		s.fail(w, r, session, err)
	}
}

// lock acquires a lock as LOCK does. Its token is that of the header If.
func (s *waited) lock(holder string, path locks.Path) locks.Lease {
	return s.acquire(holder, path, noteOwn)
}

// acquire acquires the lock of a program or of a change, as the note says.
func (s *waited) acquire(holder string, path locks.Path, note string) locks.Lease {
	lease, err := s.table.Acquire(context.Background(), locks.Request{Paths: []locks.Path{path}, Holder: locks.Holder{ID: holder}, TTL: time.Hour, Note: note})
	require.NoError(s.t, err)
	return lease
}

func (s *waited) unlock(l locks.Lease) {
	require.NoError(s.t, s.table.Release(context.Background(), l.ID, l.Holder.ID))
}

// stands reports whether a lock has not ended.
func (s *waited) stands(l locks.Lease) bool {
	_, err := s.table.FenceOf(s.t.Context(), l)
	return err == nil
}
