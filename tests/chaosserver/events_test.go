package chaosserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
)

const followed = "followed"

// pace is the time between two changes, and between two requests to a dead server. It makes about the same load for
// any number of followers.
func pace(followers int) time.Duration { return time.Duration(followers) * 200 * time.Microsecond }

// Many sockets, which also drop and reconnect on their own, follow a document that changes all the time, while other
// clients lock and write their own documents. The test kills the server. Each follower receives each change once and
// in order, and no acknowledged change is lost.
func TestEveryEventOnceThroughKills(t *testing.T) {
	n := newNode(t, tempDir(t), "")
	n.ready(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()

	count, kills := number("EVENT_SOCKETS", 50), number("EVENT_KILLS", 2)
	w := &writer{promise: promise{document: followed}, addr: n.addr, pace: pace(count), stop: make(chan struct{})}
	var working sync.WaitGroup
	followers := make([]*follower, count)
	for i := range followers {
		followers[i] = &follower{writer: w}
	}
	w.followers = followers
	for i, f := range followers {
		working.Go(func() { f.follow(ctx, t, 3+i%17) })
	}
	working.Go(func() { w.write(ctx, t) })
	var promises []*promise
	for round := range kills {
		l := newLoad(n.addr, fmt.Sprint("e", round), 2)
		allAreThere(t, followers, w)
		n.kill()
		promises = append(promises, l.end()...)
		allAreCutOff(t, followers)
		begin := time.Now()
		require.NoError(t, n.start())
		n.ready(t)
		for _, p := range promises {
			p.check(t, n.addr)
		}
		allAreThere(t, followers, w)
		t.Logf("all followers received a new event %s after the start", time.Since(begin).Round(time.Millisecond))
	}
	close(w.stop)
	working.Wait()
	for i, f := range followers {
		require.Equal(t, w.made, f.seen, "socket %d", i)
	}
	t.Logf("%d sockets, %d events each, %d documents written beside", count, len(w.made), len(promises))
	assert.NotEmpty(t, promises)
}

// allAreThere waits until every follower has received the event of a lock that was acquired after now.
func allAreThere(t *testing.T, followers []*follower, w *writer) {
	t.Helper()
	now := w.last.Load()
	require.Eventually(t, func() bool { return w.last.Load() > now }, time.Minute, 10*time.Millisecond)
	next := w.last.Load()
	await(t, followers, func(f *follower) bool { return f.after.Load() >= next })
}

// allAreCutOff waits until every follower has noticed that the server is gone.
func allAreCutOff(t *testing.T, followers []*follower) {
	t.Helper()
	before := map[*follower]int64{}
	for _, f := range followers {
		before[f] = f.failed.Load()
	}
	await(t, followers, func(f *follower) bool { return f.failed.Load() > before[f] })
}

func await(t *testing.T, followers []*follower, done func(*follower) bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, f := range followers {
			if !done(f) {
				return false
			}
		}
		return true
	}, time.Minute, 10*time.Millisecond)
}

// follower reads a document's events over one socket after the other and records each.
type follower struct {
	writer *writer
	after  atomic.Int64 // the revision of the last event
	failed atomic.Int64 // sockets that did not open
	seen   []string
}

// follow reads until the writer's last event. It drops each socket itself after this many events.
func (f *follower) follow(ctx context.Context, t *testing.T, each int) {
	for ended := false; !ended; {
		if !assert.NoError(t, ctx.Err(), "the end never came") {
			return
		}
		url := fmt.Sprintf("%s?after=%d", f.writer.url(f.writer.addr, "events"), f.after.Load())
		conn, _, err := websocket.Dial(ctx, url, nil)
		if err != nil {
			f.failed.Add(1)
			time.Sleep(f.writer.pace)
			continue
		}
		for range each {
			_, text, err := conn.Read(ctx)
			if err != nil {
				break
			}
			if ended = f.hear(t, text); ended {
				break
			}
		}
		_ = conn.CloseNow()
	}
}

// hear records an event and reports whether it is the last one.
func (f *follower) hear(t *testing.T, text []byte) bool {
	var e struct {
		Type     string `json:"type"`
		Revision int64  `json:"revision"`
		Token    int64  `json:"token"`
	}
	if !assert.NoError(t, json.Unmarshal(text, &e)) || !assert.Greater(t, e.Revision, f.after.Load(), string(text)) {
		return true
	}
	f.after.Store(e.Revision)
	f.seen = append(f.seen, fmt.Sprint(e.Type, " ", e.Token))
	return e.Type == remote.NoticeUnlocked && e.Token == f.writer.final.Load()
}

// writer makes the events. It repeats requests that a dying server left unanswered; that makes no second event.
type writer struct {
	promise
	addr string
	pace time.Duration
	stop chan struct{}
	// all followers receive one lock's event before the next one is acquired, so that none falls behind for good on a
	// slow machine
	followers []*follower
	last      atomic.Int64 // the token of the latest lock, which is also its revision
	final     atomic.Int64 // the token of the last lock, stored before its release
	made      []string
}

func (w *writer) write(ctx context.Context, t *testing.T) {
	client := &http.Client{Timeout: time.Minute} // a living server answers; after giving up, the outcome would be unknown
	until := func(event string, ok func() bool) {
		for !ok() && assert.NoError(t, ctx.Err(), "the server does not come back") {
			time.Sleep(w.pace)
		}
		w.made = append(w.made, fmt.Sprint(event, " ", w.token))
	}
	for version := 0; ctx.Err() == nil; version++ {
		for _, f := range w.followers {
			for f.after.Load() < w.last.Load() && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
		}
		until(remote.NoticeLocked, func() bool { return w.lock(client, w.addr) })
		w.last.Store(w.token)
		text := fmt.Sprint("version ", version)
		until(remote.NoticeUpdated, func() bool { return w.saveOnce(client, text) })
		ended := false
		select {
		case <-w.stop:
			ended = true
			w.final.Store(w.token)
		case <-time.After(w.pace):
		}
		until(remote.NoticeUnlocked, func() bool {
			status, _ := request(client, "DELETE", w.url(w.addr, "lock"), w.token, "")
			return status == http.StatusOK
		})
		if ended {
			return
		}
	}
}

// saveOnce saves, unless an unacknowledged request has already saved.
func (w *writer) saveOnce(client *http.Client, text string) bool {
	status, content := request(client, "GET", w.url(w.addr, "content"), 0, "")
	switch {
	case status == http.StatusOK && string(content) == text:
		return true
	case status == http.StatusOK, status == http.StatusNotFound:
		return w.save(client, w.addr, text)
	}
	return false
}
