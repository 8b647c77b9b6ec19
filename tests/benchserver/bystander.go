package main

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// watched is how long the bystanders measure. bystanding is their number at each server.
	watched    = 10 * time.Second
	bystanding = 8
	// pace is the pause between two handovers of the relay, which measures without adding load.
	pace = 20 * time.Millisecond
)

// times are the durations of the bystanders' heartbeats and acquisitions.
type times struct {
	mu            sync.Mutex
	beats, cycles []time.Duration
}

// bystanders renew locks of their own and acquire others, at both servers at the same moments.
func bystanders(quiet, crowded *server) (alone, beside *times, err error) {
	alone, beside = &times{}, &times{}
	var group errgroup.Group
	for i := range bystanding {
		for s, into := range map[*server]*times{quiet: alone, crowded: beside} {
			group.Go(func() error { return into.measure(s, "bystander-"+strconv.Itoa(i)) })
		}
	}
	return alone, beside, group.Wait()
}

func (t *times) measure(s *server, name string) error {
	if _, err := s.call("POST", name, name); err != nil {
		return err
	}
	for begin, i := time.Now(), 0; time.Since(begin) < watched; i++ {
		sent := time.Now()
		if _, err := s.call("PUT", name, name); err != nil {
			return err
		}
		beat := time.Since(sent)
		other := name + "-" + strconv.Itoa(i)
		sent = time.Now()
		if _, err := s.call("POST", other, name); err != nil {
			return err
		}
		cycle := time.Since(sent)
		if _, err := s.call("DELETE", other, name); err != nil {
			return err
		}
		t.mu.Lock()
		t.beats, t.cycles = append(t.beats, beat), append(t.cycles, cycle)
		t.mu.Unlock()
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

// relay is two clients that hand one lock over to each other.
type relay struct {
	line  *line
	ended chan struct{}
	group errgroup.Group
}

func startRelay(s *server) *relay {
	r := &relay{line: &line{s: s, many: s.client}, ended: make(chan struct{})}
	for i := range 2 {
		r.group.Go(func() error { return r.run(fmt.Sprint("runner-", i)) })
	}
	return r
}

func (r *relay) run(who string) error {
	l := r.line
	for {
		id, err := l.lock(who, "relay", 5*time.Second)
		if err != nil {
			return err
		}
		l.mu.Lock()
		if !l.given.IsZero() {
			l.gaps = append(l.gaps, time.Since(l.given))
		}
		l.mu.Unlock()
		time.Sleep(pace) // the other client has joined the queue by now
		if err := l.give(who, id); err != nil {
			return err
		}
		select {
		case <-r.ended:
			return nil
		default:
		}
	}
}

// stop ends the relay and returns the duration of each handover.
func (r *relay) stop() ([]time.Duration, error) {
	close(r.ended)
	err := r.group.Wait()
	return r.line.gaps, err
}
