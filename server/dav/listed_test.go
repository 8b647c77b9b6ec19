package dav

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// Web editors hold more locks than one request reads. Programs still find the root and its members, with the locks on these.
func TestManyLocksElsewhereHideNothing(t *testing.T) {
	t.Parallel()
	s := newWaited(t)
	s.lock("bob", place{"o"}.path())
	own := s.lock("ann1", place{"d"}.members())
	for i := range maxMembers + 2*locks.MaxPage {
		s.lock("eve", locks.Path{root, "d", strconv.Itoa(i)})
	}
	for depth, found := range map[string]int{"0": 0, "1": 2} {
		answer := s.answer("PROPFIND", "/dav/", "", "Depth", depth)
		require.Equal(t, http.StatusMultiStatus, answer.Code, answer.Body.String())
		assert.Equal(t, found, strings.Count(answer.Body.String(), "<D:activelock>"))
	}
	before := s.revision()
	assert.Equal(t, http.StatusMultiStatus, s.answer("PROPFIND", "/dav/", "", "Depth", "0").Code)
	assert.Equal(t, before, s.revision(), "a listing of many locks writes to the store")
	token := "(<" + tokenOf(own) + ">)"
	assert.Equal(t, http.StatusOK, s.answer("LOCK", "/dav/d", "", "If", token).Code)
	assert.Equal(t, http.StatusNoContent, s.answer("UNLOCK", "/dav/d", "", "Lock-Token", token[1:len(token)-1]).Code)
}

// Somebody shares the lock of the root with himself many times, and each of its members has all these locks. Programs still find the members,
// without some of the locks.
func TestManyLocksOnTheRootHideNothing(t *testing.T) {
	t.Parallel()
	s := newWaited(t)
	const files = 1500
	for i := range files {
		_, err := s.Store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(fmt.Sprintf("content/m%d", i), []byte("{}"))}})
		require.NoError(t, err)
	}
	for range 2 * sharers {
		_, err := s.table.Acquire(t.Context(), locks.Request{Paths: []locks.Path{{root}}, Mode: locks.Shared, Holder: locks.Holder{ID: "eve"}, TTL: time.Hour})
		require.NoError(t, err)
	}
	answer := s.answer("PROPFIND", "/dav/", "", "Depth", "1")
	require.Equal(t, http.StatusMultiStatus, answer.Code, answer.Body.String()[:min(answer.Body.Len(), 200)])
	assert.GreaterOrEqual(t, strings.Count(answer.Body.String(), "<D:response>"), files)
}

func (s *waited) revision() int64 {
	_, revision, err := s.Store.Get(s.t.Context(), "x")
	require.NoError(s.t, err)
	return revision
}
