package server_test

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
	"github.com/holdfast-dev/holdfast/server"
)

func (c client) withToken(token int64) client {
	return c.with(remote.HeaderToken, strconv.FormatInt(token, 10))
}

// asks sends a question; the answer comes in the channel.
func (c client) asks(ctx context.Context, query string, body any) <-chan answer {
	answers := make(chan answer, 1)
	go func() {
		a, err := c.try(ctx, "POST", lockOf("r")+"/ask"+query, body)
		if err == nil {
			answers <- a
		}
		close(answers)
	}()
	return answers
}

// nextOf returns the next event of a type.
func (s stream) nextOf(kind string) event {
	s.t.Helper()
	for {
		if e := s.next(); e["type"] == kind {
			return e
		}
	}
}

// The holder passes the lock on to the one who asked, ahead of everybody who waits in line.
func TestHolderPassesTheLockOn(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	other := s.another(t, nil)
	ann, bob, eve := s.as(t, "ann"), other.as(t, "bob"), s.as(t, "eve")
	token := ann.lock("r")
	heard := s.events(t, "r", "?after="+strconv.FormatInt(token, 10))
	waiting := make(chan answer, 1)
	go func() { waiting <- eve.do("POST", lockOf("r")+"?wait_ms=20000", nil) }()
	ann.seesWaiting("documents/r", 1)

	asked := bob.asks(t.Context(), "?ticket=b", map[string]any{"name": "Bob", "grace_ms": 10000})
	question := heard.next()
	assert.Equal(t, remote.NoticeAsked, question["type"])
	assert.Equal(t, "Bob", question["holder_name"])
	assert.EqualValues(t, token, question["token"])
	assert.NotEmpty(t, question["ask_id"])
	assert.NotEmpty(t, question["asked_at"])

	require.Equal(t, http.StatusOK, ann.withToken(token).do("POST", lockOf("r")+"/accept", nil).status)
	require.Equal(t, http.StatusOK, ann.save("r", token, "the last of Ann's").status)
	require.Equal(t, http.StatusOK, ann.withToken(token).do("DELETE", lockOf("r"), nil).status)
	granted := <-asked
	require.Equal(t, http.StatusOK, granted.status, string(granted.text))
	assert.Greater(t, granted.token(), token)
	assert.NotEmpty(t, granted.body["locked_at"])
	assert.Equal(t, remote.NoticeUpdated, heard.next()["type"])
	ended, begun := heard.next(), heard.next()
	assert.Equal(t, []any{remote.NoticeUnlocked, "transferred"}, []any{ended["type"], ended["reason"]})
	assert.Equal(t, []any{remote.NoticeLocked, "Bob"}, []any{begun["type"], begun["holder_name"]})
	bob.seesWaiting("documents/r", 1)

	// A client that asks again, because the answer was lost, gets the same lock.
	again := <-bob.asks(t.Context(), "?ticket=b&fresh=true", map[string]any{"name": "Bob"})
	assert.Equal(t, granted.token(), again.token(), string(again.text))
	require.Equal(t, http.StatusOK, bob.do("DELETE", lockOf("r"), nil).status)
	assert.Equal(t, http.StatusOK, (<-waiting).status)
	assertNothingAsked(t, s)
}

func assertNothingAsked(t *testing.T, s *instance) {
	t.Helper()
	require.Eventually(t, func() bool {
		keys, err := s.Store().Keys(t.Context(), "asks/")
		return err == nil && len(keys) == 0
	}, 30*time.Second, 10*time.Millisecond, "a question leaves nothing behind")
}

func TestHolderRefuses(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	other := s.another(t, nil)
	ann, bob, eve := s.as(t, "ann"), other.as(t, "bob"), s.as(t, "eve")
	refuse := lockOf("r") + "/refuse"
	assertError(t, ann.do("POST", refuse, nil), http.StatusNotFound, "lock_not_found")
	token := ann.lock("r")
	assertError(t, ann.do("POST", refuse, nil), http.StatusNotFound, "ask_not_found")
	assertError(t, ann.do("POST", lockOf("r")+"/accept", nil), http.StatusNotFound, "ask_not_found")
	heard := s.events(t, "r", "")
	asked := bob.asks(t.Context(), "?ticket=b", map[string]any{"grace_ms": 20000})
	heard.nextOf(remote.NoticeAsked)

	// One question at a time, and the holder alone answers it, for the lock that it has.
	assertError(t, <-eve.asks(t.Context(), "", nil), http.StatusConflict, "handover_busy")
	assertError(t, eve.do("POST", refuse, nil), http.StatusForbidden, "not_locked_by_user")
	assertError(t, ann.withToken(token-1).do("POST", refuse, nil), http.StatusConflict, "stale_token")
	assertError(t, ann.do("POST", refuse, map[string]any{"ask_id": "another"}), http.StatusNotFound, "ask_not_found")
	require.Equal(t, http.StatusOK, ann.withToken(token).do("POST", refuse, map[string]any{"reason": "in a call"}).status)
	refused := <-asked
	assertError(t, refused, http.StatusConflict, "handover_refused")
	assert.Equal(t, "in a call", refused.body["reason"])
	assert.Equal(t, "refused", heard.nextOf(remote.NoticeAskEnded)["reason"])
	assert.EqualValues(t, token, bob.do("GET", lockOf("r"), nil).body["token"])
	assertNothingAsked(t, s)

	// An asker that is not granted has no place before others.
	order := make(chan string, 2)
	var waiters sync.WaitGroup
	defer waiters.Wait()
	wait := func(c client, query string) {
		waiters.Go(func() {
			c.do("POST", lockOf("r")+"?wait_ms=20000"+query, nil)
			order <- c.secret
			c.do("DELETE", lockOf("r"), nil)
		})
	}
	wait(eve, "")
	ann.seesWaiting("documents/r", 1)
	asked = bob.asks(t.Context(), "?ticket=c", map[string]any{"grace_ms": 20000})
	heard.nextOf(remote.NoticeAsked)
	require.Equal(t, http.StatusOK, ann.do("POST", refuse, map[string]any{"busy": true}).status)
	assertError(t, <-asked, http.StatusConflict, "handover_busy")
	wait(bob, "&ticket=c")
	ann.seesWaiting("documents/r", 2)
	ann.do("DELETE", lockOf("r"), nil)
	assert.Equal(t, []string{"eve", "bob"}, []string{<-order, <-order})
}

func TestHolderDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann, bob := s.as(t, "ann"), s.as(t, "bob")
	ann.lock("r")
	heard := s.events(t, "r", "")
	began := time.Now()
	assertError(t, <-bob.asks(t.Context(), "", map[string]any{"grace_ms": 300}), http.StatusRequestTimeout, "handover_timeout")
	assert.WithinRange(t, time.Now(), began.Add(300*time.Millisecond), began.Add(5*time.Second))
	assert.Equal(t, "timeout", heard.nextOf(remote.NoticeAskEnded)["reason"])

	// A holder that has accepted hands over once it releases.
	asked := bob.asks(t.Context(), "", map[string]any{"grace_ms": 20000})
	heard.nextOf(remote.NoticeAsked)
	require.Equal(t, http.StatusOK, ann.do("POST", lockOf("r")+"/accept", nil).status)
	ann.do("DELETE", lockOf("r"), nil)
	assert.Equal(t, http.StatusOK, (<-asked).status)
	assertNothingAsked(t, s)
}

// An asker that disconnects gets nothing, and blocks no other client.
func TestAskerThatDisconnectsGetsNothing(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann, bob, eve := s.as(t, "ann"), s.as(t, "bob"), s.as(t, "eve")
	ann.lock("r")
	heard := s.events(t, "r", "")
	ctx, leave := context.WithCancel(t.Context())
	asked := bob.asks(ctx, "?ticket=b", nil)
	heard.nextOf(remote.NoticeAsked)
	leave()
	<-asked
	assert.Equal(t, "cancelled", heard.nextOf(remote.NoticeAskEnded)["reason"])
	assertError(t, ann.do("POST", lockOf("r")+"/refuse", nil), http.StatusNotFound, "ask_not_found")
	ann.do("DELETE", lockOf("r"), nil)
	assert.Equal(t, http.StatusOK, eve.do("POST", lockOf("r"), nil).status)
}

// The lock of a holder that dies goes to the one who asked.
func TestHolderDiesWhileItIsAsked(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.LockTTL = shortTTL })
	ann, bob, eve := s.as(t, "ann"), s.as(t, "bob"), s.as(t, "eve")
	ann.lock("r")
	go func() { _, _ = eve.try(t.Context(), "POST", lockOf("r")+"?wait_ms=20000", nil) }()
	ann.seesWaiting("documents/r", 1)
	assert.Equal(t, http.StatusOK, (<-bob.asks(t.Context(), "", map[string]any{"grace_ms": 20000})).status)
}

func TestAskingForAFreeOrOwnLockAsksNobody(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	free := <-ann.asks(t.Context(), "", nil)
	require.Equal(t, http.StatusOK, free.status, string(free.text))
	own := <-ann.asks(t.Context(), "", nil)
	assert.Equal(t, free.token(), own.token(), "the session's own")
	fresh := <-ann.asks(t.Context(), "?fresh=true", nil)
	assert.Greater(t, fresh.token(), own.token())
	for _, bad := range []any{"x", map[string]any{"grace_ms": 0}, map[string]any{"grace_ms": -1}, map[string]any{"grace_ms": 60001}, map[string]any{"name": ""}} {
		assertError(t, <-ann.asks(t.Context(), "", bad), http.StatusBadRequest, "invalid_request")
	}
	assertNothingAsked(t, s)
}
