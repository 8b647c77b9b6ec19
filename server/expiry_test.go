package server_test

import (
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// The default times are 30 s, with a heartbeat every 10 s. make chaos-server runs the tests with these; otherwise the times are a twentieth.
var shortTTL, shortBeat = times()

func times() (ttl, beat time.Duration) {
	if os.Getenv("REAL_TIMES") != "" {
		return 30 * time.Second, 10 * time.Second
	}
	return 1500 * time.Millisecond, 500 * time.Millisecond
}

// slack is the maximum delay of the event of an expiry, for any time to live.
const slack = 600 * time.Millisecond

func short(c *server.Config) { c.LockTTL = shortTTL }

// assertUnlocked waits for the end of a lock whose last heartbeat was sent and answered at these times. The slack begins when the control has
// granted another lock, which it is asked for at the moment of the expiry: a busy machine is late with that too.
func assertUnlocked(t *testing.T, s stream, control *instance, sent, answered time.Time) {
	t.Helper()
	granted := make(chan time.Time, 1)
	go func() {
		time.Sleep(time.Until(answered.Add(shortTTL)))
		_, err := control.as(t, "control").try(t.Context(), "POST", lockOf("control"), nil)
		assert.NoError(t, err)
		granted <- time.Now()
	}()
	e := s.next()
	for e["type"] != remote.NoticeUnlocked {
		e = s.next()
	}
	told := time.Now()
	assert.Equal(t, "expired", e["reason"])
	assert.GreaterOrEqual(t, told.Sub(sent), shortTTL, "the lease does not end before its time")
	assert.LessOrEqual(t, told.Sub(<-granted), slack, "the event comes soon after the expiry")
}

// inTime skips the rest of a test if the machine is so slow that a lock has expired since it was last extended: the test proves nothing then.
func inTime(t *testing.T, extended time.Time) {
	t.Helper()
	if late := time.Since(extended); late >= shortTTL {
		t.Skipf("this machine is too slow: %s from one heartbeat to the next", late)
	}
}

// lockNow acquires a document's lock, and returns the time at which the request was sent.
func lockNow(c client, document string) (token int64, sent time.Time) {
	sent = time.Now()
	return c.lock(document), sent
}

// beat extends the lock on "r", which was last extended at that time.
func beat(t *testing.T, c client, extended time.Time) (sent, answered time.Time) {
	t.Helper()
	sent = time.Now()
	a := c.do("PUT", lockOf("r"), nil)
	inTime(t, extended)
	require.Equal(t, http.StatusOK, a.status)
	return sent, time.Now()
}

// Scenario 1: as long as the heartbeat goes on, the lock stays.
func TestHeartbeatsKeepTheLock(t *testing.T) {
	t.Parallel()
	s := start(t, short)
	ann := s.as(t, "ann")
	token, extended := lockNow(ann, "r")
	for range 6 {
		time.Sleep(shortBeat)
		extended, _ = beat(t, ann, extended)
		shown := ann.do("GET", lockOf("r"), nil)
		inTime(t, extended)
		assert.Equal(t, token, shown.token())
	}
}

// Scenario 2: the browser is closed, the heartbeat stops. It went to one server, and both report the expiry.
func TestAnAbandonedLockExpiresOnTime(t *testing.T) {
	t.Parallel()
	first := start(t, short)
	second := first.another(t, short)
	near, far := first.events(t, "r", ""), second.events(t, "r", "")
	ann := first.as(t, "ann")
	_, extended := lockNow(ann, "r")
	time.Sleep(shortBeat)
	sent, answered := beat(t, second.as(t, "ann"), extended)
	assertUnlocked(t, near, first, sent, answered)
	assertUnlocked(t, far, first, sent, answered)
}

// Scenario 3: heartbeats fail, and the last that got through counts.
func TestFailedHeartbeatsDoNotCount(t *testing.T) {
	t.Parallel()
	s := start(t, short)
	events := s.events(t, "r", "")
	ann := s.as(t, "ann")
	_, extended := lockNow(ann, "r")
	time.Sleep(shortBeat)
	sent, answered := beat(t, ann, extended)
	for range 2 { // heartbeats that fail, as in a broken network
		time.Sleep(shortBeat / 2)
		failed := s.as(t, "nobody").do("PUT", lockOf("r"), nil)
		inTime(t, sent)
		assert.Equal(t, http.StatusForbidden, failed.status)
	}
	assertUnlocked(t, events, s, sent, answered)
	assertError(t, ann.do("PUT", lockOf("r"), nil), http.StatusNotFound, "lock_not_found")
}

// Locks outlast the server. The lock of a holder that comes back goes on, and the other lock ends at its TTL.
func TestExpiryAcrossARestart(t *testing.T) {
	t.Parallel()
	c := server.DefaultConfig()
	c.DataDir = kvtest.Dir(t)
	c.LockTTL = shortTTL
	s := startWith(t, c)
	ann := s.as(t, "ann")
	// This lease outlasts the restart, however long the restart takes.
	long := object{"paths": [][]string{{"documents", "beaten"}}, "ttl_ms": time.Hour.Milliseconds()}
	require.Equal(t, http.StatusOK, ann.do("POST", "/api/locks", long).status)
	token, extended := lockNow(ann, "r")
	time.Sleep(shortBeat / 2)
	sent, answered := beat(t, ann, extended)
	s.Stop(t)
	time.Sleep(shortBeat)

	s = startWith(t, c)
	assert.Equal(t, http.StatusOK, s.as(t, "ann").do("PUT", lockOf("beaten"), nil).status, "the holder comes back")
	assertUnlocked(t, s.events(t, "r", fmt.Sprint("?after=", token)), s, sent, answered)
}

func TestExpiryWhileAllServersAreDown(t *testing.T) {
	t.Parallel()
	c := server.DefaultConfig()
	c.DataDir = kvtest.Dir(t)
	c.LockTTL = 200 * time.Millisecond
	s := startWith(t, c)
	token := s.as(t, "ann").lock("r")
	s.Stop(t)
	time.Sleep(c.LockTTL)
	s = startWith(t, c)
	e := s.events(t, "r", fmt.Sprint("?after=", token)).next() // a token is the revision of its lock
	assert.Equal(t, remote.NoticeUnlocked, e["type"])
	assert.Equal(t, float64(token), e["token"])
	assert.Greater(t, s.as(t, "bob").lock("r"), token)
}

// Closing a socket does not release a lock.
func TestClosingASocketReleasesNothing(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	events := s.events(t, "r", "")
	token := s.as(t, "ann").lock("r")
	events.next()
	require.NoError(t, events.conn.CloseNow())
	assert.Equal(t, token, s.as(t, "bob").do("GET", lockOf("r"), nil).token())
}

// A holder that pauses for longer than its TTL and then writes is refused, whether its lease was swept, replaced or neither.
func TestAPausedHolderWritesNothing(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.LockTTL = 60 * time.Millisecond; c.Rate, c.AddressRate = 0, 0 })
	runs := fencingRuns()
	ann, bob := s.as(t, "ann"), s.as(t, "bob")
	accepted := 0
	for i := range runs {
		token := ann.lock("r")
		if i%3 == 0 {
			// Bob queues and is granted at the moment of expiry, while Ann's write is on its way.
			granted := make(chan answer, 1)
			go func() {
				a, err := bob.try(t.Context(), "POST", lockOf("r")+"?wait_ms=5000", nil)
				assert.NoError(t, err)
				granted <- a
			}()
			a := <-granted
			if ann.save("r", token, "late").status == http.StatusOK {
				accepted++
			}
			require.Equal(t, http.StatusOK, a.status)
			bob.save("r", a.token(), "bob's") // refused where, on a slow machine, his time is over too
			bob.do("DELETE", lockOf("r"), nil)
			continue
		}
		time.Sleep(60*time.Millisecond + time.Duration(i%7)*time.Millisecond)
		if ann.save("r", token, "late").status == http.StatusOK {
			accepted++
		}
	}
	assert.Zero(t, accepted, "of %d", runs)
	assert.NotEqual(t, "late", string(ann.do("GET", contentOf("r"), nil).text))
}
