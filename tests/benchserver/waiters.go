package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// longest is the maximum waiting time of each waiter.
const longest = 5 * time.Minute

// arrival is the pause between two arrivals: the benchmark measures waiting, not a stampede.
const arrival = 3 * time.Millisecond

// line is a document with many waiters. Each waiter also holds a lock of its own, so each could be part of a
// deadlock.
type line struct {
	s       *server
	many    *http.Client
	waiters int

	mu     sync.Mutex
	given  time.Time // the time of the last release
	gaps   []time.Duration
	served int
}

// waiting measures the cost that many waiters for one document have for others, and the duration of each handover.
// The baseline comes from a second server without waiters at the same moments, so that the disk and other programs
// slow both alike.
func waiting(t *table, s *server, binary string, waiters int) error {
	quiet, err := startServer(binary)
	if err != nil {
		return err
	}
	defer quiet.stop()
	l := &line{s: s, waiters: waiters, many: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: waiters}, Timeout: longest + time.Minute}}
	first, err := l.lock("first", "documents/popular", 0)
	if err != nil {
		return err
	}
	var group errgroup.Group
	for i := range waiters {
		time.Sleep(arrival)
		group.Go(func() error { return l.wait(strconv.Itoa(i)) })
	}
	if err := l.standing(); err != nil {
		return err
	}
	alone, beside, err := bystanders(quiet, s)
	if err != nil {
		return err
	}
	busy, _, err := s.usage()
	if err != nil {
		return err
	}
	begin := time.Now()
	relay := startRelay(quiet)
	if err := l.give("first", first); err != nil {
		return err
	}
	if err := group.Wait(); err != nil {
		return err
	}
	took := time.Since(begin)
	passed, err := relay.stop()
	if err != nil {
		return err
	}
	ended, _, err := s.usage()
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%d wait for one document, ", waiters)
	pair := func(alone, beside []time.Duration) string {
		return fmt.Sprintf("%.2f ms, %.2f ms", ms(quantile(alone, .99)), ms(quantile(beside, .99)))
	}
	t.add(what+"heartbeat of another: p99 without them and beside them", "holdfast", pair(alone.beats, beside.beats), "twice")
	t.add(what+"acquisition of another: p99 without them and beside them", "holdfast", pair(alone.cycles, beside.cycles), "twice")
	t.add(what+"from a release to the next grant: p50, p99", "holdfast", halves(l.gaps), "20 ms")
	t.add(what+"processor time of the server for each", "holdfast", fmt.Sprintf("%.2f ms", ms(ended-busy)/float64(waiters)), "")
	t.add("two pass a lock on at the same time at a server of their own: p50, p99", "holdfast", halves(passed), "")
	t.add(what+"served", "holdfast", fmt.Sprintf("%d in %.1f s", l.served, took.Seconds()), strconv.Itoa(waiters))
	return nil
}

func halves(times []time.Duration) string {
	return fmt.Sprintf("%.1f ms, %.1f ms", ms(quantile(times, .5)), ms(quantile(times, .99)))
}

// wait is one waiter: it holds a lock of its own, waits, and hands the document over at once.
func (l *line) wait(who string) error {
	own, err := l.lock(who, "own/"+who, 0)
	if err != nil {
		return err
	}
	id, err := l.lock(who, "documents/popular", longest)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.gaps = append(l.gaps, time.Since(l.given))
	l.served++
	l.mu.Unlock()
	return errors.Join(l.give(who, id), l.do("DELETE", "/api/locks/"+own, who, nil, nil))
}

func (l *line) give(who, id string) error {
	l.mu.Lock()
	l.given = time.Now()
	l.mu.Unlock()
	return l.do("DELETE", "/api/locks/"+id, who, nil, nil)
}

// standing waits until all waiters have joined the queue.
func (l *line) standing() error {
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(100 * time.Millisecond) {
		response, err := l.s.client.Get(l.s.base + "/metrics")
		if err != nil {
			return err
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			return err
		}
		if bytes.Contains(text, []byte(fmt.Sprintf("\nholdfast_waiters %d\n", l.waiters))) {
			time.Sleep(time.Second) // the last of them joins the queue meanwhile
			return nil
		}
	}
	return fmt.Errorf("%d waiters did not join the queue within a minute", l.waiters)
}

func (l *line) lock(who, path string, wait time.Duration) (id string, err error) {
	body := map[string]any{"paths": [][]string{strings.Split(path, "/")}, "ttl_ms": 600_000, "wait_ms": wait.Milliseconds()}
	var answer struct {
		ID string `json:"lease_id"`
	}
	err = l.do("POST", "/api/locks", who, body, &answer)
	return answer.ID, err
}

func (l *line) do(method, path, secret string, body, answer any) error {
	return l.s.send(l.many, method, path, secret, body, answer)
}
