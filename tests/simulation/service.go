package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/server/asks"
	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/events"
	"github.com/holdfast-dev/holdfast/server/httpapi"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/metrics"
	"github.com/holdfast-dev/holdfast/server/recorded"
	"github.com/holdfast-dev/holdfast/server/sessions"
	"github.com/holdfast-dev/holdfast/server/sweeper"
)

// service is a Holdfast server: one or more instances over one store.
type service struct {
	w       *world
	dice    *dice
	store   *memory.Store
	look    *kv.Store // for the checker: without faults
	blobs   *memoryBlobs
	origins []string

	mu        sync.Mutex
	instances []*instance // nil if an instance is down
	rate      float64     // of requests to the store that fail
	stall     time.Duration
	last      time.Time // the last time when an instance or the store was unhealthy

	stalled sync.WaitGroup // requests to the store, and deliveries from it, that take more than a second
}

// instance is one process of the server.
type instance struct {
	client  *kv.Store
	table   *locks.Table
	hub     *events.Hub
	handler http.Handler
	dead    chan struct{} // closed when the process ends
	stop    context.CancelFunc
	running sync.WaitGroup
}

func newService(w *world, instances int, origins []string) *service {
	s := &service{w: w, dice: w.dice("service"), store: memory.New(), blobs: newMemoryBlobs(), origins: origins, instances: make([]*instance, instances)}
	s.look = s.store.Client(nil)
	for i := range s.instances {
		s.start(i)
	}
	return s
}

// link is the connection of a process to the store.
func (s *service) link(dead <-chan struct{}) memory.Link {
	return func(ctx context.Context, request string) (before, after error) {
		s.mu.Lock()
		rate, stall := s.rate, s.stall
		s.mu.Unlock()
		long := s.dice.between(100*time.Microsecond, 5*time.Millisecond)
		if stall > 0 && s.dice.chance(0.2) {
			long = s.dice.between(5*time.Millisecond, stall)
		}
		if request == "grant" || request == "revoke" {
			long = 0 // the table holds a mutex meanwhile, for which virtual time would wait
		}
		if long > time.Second {
			s.ill() // now, because a lease may end while the request waits
			defer s.ill()
			s.stalled.Add(1)
			defer s.stalled.Done()
		}
		timer := time.NewTimer(long)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err(), nil
		case <-dead:
			return memory.ErrLost, nil
		}
		select {
		case <-dead:
			return memory.ErrLost, nil
		default:
		}
		switch {
		case s.dice.chance(rate):
			before = memory.ErrLost
		case s.dice.chance(rate):
			after = memory.ErrLost
		case request == "txn" && s.dice.chance(rate/2):
			before = s.late()
		}
		if before != nil || after != nil {
			s.ill()
		}
		return before, after
	}
}

// late makes the store carry out a transaction whose answer was given up long before.
func (s *service) late() error {
	s.stalled.Add(1)
	return &memory.Late{After: s.dice.between(10*time.Millisecond, 20*time.Second), Done: func() {
		s.ill()
		s.stalled.Done()
	}}
}

// start starts an instance.
func (s *service) start(i int) {
	in := &instance{dead: make(chan struct{})}
	in.client = s.store.Client(s.link(in.dead))
	for {
		if err := in.open(s); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.mu.Lock()
	s.instances[i] = in
	s.mu.Unlock()
}

func (in *instance) open(s *service) (err error) {
	log := slog.New(slog.DiscardHandler)
	counts := metrics.New(nil)
	in.table, err = locks.Open(context.Background(), in.client, locks.Config{Record: recorded.Lock, Metrics: counts, Log: log, SingleServer: len(s.instances) == 1})
	if err != nil {
		return err
	}
	contents := content.New(content.Config{KV: in.client, Locks: in.table, Blobs: s.blobs, Keep: 20, Record: recorded.Content})
	if in.hub, err = events.Open(context.Background(), in.client, recorded.State(in.table, contents)); err != nil {
		in.table.Close()
		return err
	}
	pageDrafts := asks.New(in.client, in.table, recorded.Ask)
	in.handler, err = httpapi.New(httpapi.Config{Locks: in.table, Asks: pageDrafts, Metrics: counts, Log: log,
		Contents: contents, Events: in.hub,
		Sessions: sessions.Source{Key: []byte("of this simulation")}, Origins: s.origins, LockTTL: serverTTL, MaxWait: time.Minute,
		WriteLimit: 30 * time.Second, MaxContent: 1 << 20, LockAll: true})
	if err != nil {
		panic(fmt.Errorf("the API does not start: %w", err))
	}
	background, stop := context.WithCancel(context.Background())
	in.stop = stop
	in.running.Go(func() { sweeper.Run(background, in.table, time.Minute, log) })
	return nil
}

// kill ends a process at once. Its work is not finished, and its clients get no answer.
func (s *service) kill(i int) {
	s.mu.Lock()
	in := s.instances[i]
	s.instances[i] = nil
	s.mu.Unlock()
	s.ill()
	if in != nil {
		close(in.dead)
		in.close()
	}
}

func (in *instance) close() {
	in.stop()
	in.running.Wait()
	in.hub.Close()
	in.table.Close()
	_ = in.client.Close()
}

// close ends everything.
func (s *service) close() {
	for i := range s.instances {
		s.kill(i)
	}
	_ = s.look.Close()
	s.store.Close()
}

// any returns a running instance, or nil.
func (s *service) any(d *dice) *instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	var up []*instance
	for _, in := range s.instances {
		if in != nil {
			up = append(up, in)
		}
	}
	if len(up) == 0 || len(up) < len(s.instances) && d.chance(0.3) {
		return nil
	}
	return up[d.n(len(up))]
}

// ill records that the service is unhealthy.
func (s *service) ill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Now()
}

// set sets the behaviour of the connection to the store.
func (s *service) set(rate float64, stall time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rate, s.stall = rate, stall
}

// illSince reports whether the service was unhealthy since a moment.
func (s *service) illSince(t time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range s.instances {
		if in == nil {
			return true
		}
	}
	return s.last.After(t)
}

// claims returns the server's leases by their tokens: leases of several holders may share one.
func (s *service) claims() map[int64][]string {
	found, _, err := s.look.Range(context.Background(), "locks/claim/")
	if err != nil {
		s.w.found("simulation", "the store cannot be read: %v", err)
	}
	all := make(map[int64][]string)
	for _, e := range found {
		if lease := string(e.Value); !slices.Contains(all[e.Created], lease) { // its key of another path
			all[e.Created] = append(all[e.Created], lease)
		}
	}
	return all
}

// left returns the leases and waiters on the server.
func (s *service) left() (keys []string) {
	for _, prefix := range []string{"locks/claim/", "locks/wait/"} {
		found, err := s.look.Keys(context.Background(), prefix)
		if err != nil {
			s.w.found("simulation", "the store cannot be read: %v", err)
		}
		keys = append(keys, found...)
	}
	return keys
}
