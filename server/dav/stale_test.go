package dav

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/policy"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

// The lock of a program ends just before the transaction that makes its collection. The program is not told that there is
// a collection.
func TestACollectionIsNotMadeWithoutItsLock(t *testing.T) {
	s := newInterruptedStore(t)
	g := s.right(s.handler(s.interrupted, s.interrupted), place{"c"})
	s.before = func() { require.NoError(t, s.table.Release(context.Background(), g.lease.ID, "ann")) }
	require.ErrorIs(t, g.makeDir(t.Context(), g.place), errIfFailed)
}

// A document changes after COPY has compared it with the condition of the program, and before COPY reads it.
func TestACopyIsOfTheContentThatTheProgramExpects(t *testing.T) {
	s := newInterruptedStore(t)
	h := s.handler(s.uninterrupted, s.uninterrupted)
	source, target := s.right(h, place{"from"}), s.right(h, place{"to"})
	write(t, source, "text")
	from, err := h.look(t.Context(), source.call.session, source.place)
	require.NoError(t, err)
	source.call.r.Header.Set("If-Match", from.info.ETag)
	write(t, source, "later text")

	x := &transfer{call: source.call, from: from, to: node{place: target.place}, target: target}
	_, err = h.carryOut(x)
	require.ErrorIs(t, err, content.ErrPrecondition)
	_, _, err = h.Contents.Read(t.Context(), target.place.id())
	require.ErrorIs(t, err, content.ErrNotFound)
}

// A server stops for so long that the lock of a change ends. The program is not told that the file does not exist.
func TestAChangeWhoseOwnLockHasEndedIsRefused(t *testing.T) {
	s := newInterruptedStore(t)
	g := s.right(s.handler(s.uninterrupted, s.uninterrupted), place{"c"})
	g.own = true // since the zero time
	require.NoError(t, s.table.Release(t.Context(), g.lease.ID, "ann"))
	_, err := g.removeAll(t.Context(), node{place: g.place, kind: file}, nil)
	require.ErrorIs(t, err, errIfFailed)
}

// Another program saves the file that a COPY reads, just before the COPY removes the collection at its destination. The COPY is of the
// content that its program expects. Otherwise the collection would go for nothing.
func TestACopyReadsBeforeItRemoves(t *testing.T) {
	t.Parallel()
	s := newWaited(t)
	s.Contents = s.handler(s.interrupted, s.uninterrupted).Contents
	s.before = func() { s.save("a") }
	expected := s.tag("a")
	answer := s.answer("COPY", "/dav/a", "", "Destination", "/dav/d", "If-Match", expected)
	assert.Equal(t, http.StatusNoContent, answer.Code, answer.Body.String())
	assert.Equal(t, expected, s.tag("d"))
	assert.NotEqual(t, expected, s.tag("a"))
}

// The policy allows a user shorter locks than a change takes for itself. The change extends its lock in time nevertheless.
func TestAChangeExtendsAShortLockInTime(t *testing.T) {
	t.Parallel()
	s := newWaited(t)
	rules, err := policy.Parse([]byte("anyone * read lock write max-ttl=9s\n"))
	require.NoError(t, err)
	s.api.Policy = func() *policy.Policy { return rules }
	r := httptest.NewRequestWithContext(t.Context(), "DELETE", "/dav/d", nil)
	g, err := s.mayChange(&call{r: r, session: sessions.Session{HolderID: "ann1"}, place: place{"d"}}, place{"d"}, theEntry)
	require.NoError(t, err)
	defer g.end()
	require.WithinDuration(t, time.Now().Add(9*time.Second), g.lease.ExpiresAt, 5*time.Second)

	g.since = g.since.Add(-4 * time.Second)
	before := g.since
	_, err = g.fence(t.Context())
	require.NoError(t, err)
	assert.NotEqual(t, before, g.since, "it was extended")
}
