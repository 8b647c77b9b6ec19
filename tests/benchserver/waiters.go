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

// crowded is what waiting measures.
type crowded struct {
	alone, beside *times          // of a client without the waiters, and beside them
	busy          time.Duration   // processor time of the server for all waiters
	took          time.Duration   // from the first release to the last grant
	passed        []time.Duration // handovers of two clients at a server of their own
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
	c, err := l.crowd(quiet)
	if err != nil {
		return err
	}
	l.report(t, c)
	return nil
}

// crowd lets all waiters come, measures what others notice of them, and then serves them.
func (l *line) crowd(quiet *server) (c crowded, err error) {
	first, err := l.lock("first", "documents/popular", 0)
	if err != nil {
		return c, err
	}
	var group errgroup.Group
	for i := range l.waiters {
		time.Sleep(arrival)
		group.Go(func() error { return l.wait(strconv.Itoa(i)) })
	}
	if err := l.standing(); err != nil {
		return c, err
	}
	if c.alone, c.beside, err = bystanders(quiet, l.s); err != nil {
		return c, err
	}
	err = l.serve(&c, quiet, first, group.Wait)
	return c, err
}

// serve releases the first lock, and returns when every waiter has had its turn. Meanwhile two clients pass a lock on at
// the quiet server.
func (l *line) serve(c *crowded, quiet *server, first string, all func() error) error {
	before, _, err := l.s.usage()
	if err != nil {
		return err
	}
	begin := time.Now()
	relay := startRelay(quiet)
	if err := l.give("first", first); err != nil {
		return err
	}
	if err := all(); err != nil {
		return err
	}
	c.took = time.Since(begin)
	if c.passed, err = relay.stop(); err != nil {
		return err
	}
	after, _, err := l.s.usage()
	c.busy = after - before
	return err
}

// report adds the lines of the table.
func (l *line) report(t *table, c crowded) {
	what := fmt.Sprintf("%d wait for one document, ", l.waiters)
	pair := func(alone, beside []time.Duration) string {
		return fmt.Sprintf("%.2f ms, %.2f ms", ms(quantile(alone, .99)), ms(quantile(beside, .99)))
	}
	t.add(what+"heartbeat of another: p99 without them and beside them", "holdfast", pair(c.alone.beats, c.beside.beats), "twice")
	t.add(what+"acquisition of another: p99 without them and beside them", "holdfast", pair(c.alone.cycles, c.beside.cycles), "twice")
	t.add(what+"from a release to the next grant: p50, p99", "holdfast", halves(l.gaps), "20 ms")
	t.add(what+"processor time of the server for each", "holdfast", fmt.Sprintf("%.2f ms", ms(c.busy)/float64(l.waiters)), "")
	t.add("two pass a lock on at the same time at a server of their own: p50, p99", "holdfast", halves(c.passed), "")
	t.add(what+"served", "holdfast", fmt.Sprintf("%d in %.1f s", l.served, c.took.Seconds()), strconv.Itoa(l.waiters))
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
