package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// A site is this many users, each of whom edits a document of its own. One in tenth types.
	siteUsers, tenth = 1000, 10
	beatEvery        = 10 * time.Second // of each user
	saveEvery        = 2 * time.Second  // of each user who types
	saveBytes        = 10_000
	// slow is the p99 at which a server counts as too busy. A step has a length and twice the users of the one before.
	slow                = 100 * time.Millisecond
	stepTime            = 10 * time.Second
	fewUsers, manyUsers = 250, 32_000
	// inFlight is how many requests the load generator has open at most. Further ones wait, and their wait counts.
	inFlight = 256
	// inTime is the share of the requests of a step that a server which keeps up has answered at its end.
	inTime = .95
)

// population is the users so far, with the locks that they hold.
type population struct {
	s      *server
	leases []string
	tokens []int64
	data   []byte

	mu           sync.Mutex
	beats, saves []time.Duration
	failed       error
}

// growth doubles the number of users until the server no longer answers in time, and notes up to which number the p99
// of heartbeats and saves was short. From the processor time of the last step in which the server kept up, it derives
// how many servers 10, 100 and 1,000 sites take.
func growth(t *table, s *server) error {
	g := &population{s: s, data: make([]byte, saveBytes)}
	rand.Read(g.data) // never fails
	_, empty, err := s.usage()
	if err != nil {
		return err
	}
	var cores, memory float64 // of one user
	quick := 0
	for users := fewUsers; users <= manyUsers; users *= 2 {
		if err := g.acquire(users); err != nil {
			return err
		}
		before, _, err := s.usage()
		if err != nil {
			return err
		}
		share := g.run()
		after, rss, err := s.usage()
		if err = errors.Join(err, g.failed); err != nil {
			return err
		}
		busy := float64(after-before) / float64(stepTime)
		late := ""
		if share < inTime {
			late = fmt.Sprintf("; %.0f %% in time", share*100)
		}
		t.add(fmt.Sprintf("%d users edit, a tenth types, %d heartbeats and %d saves of 10 kB a second: p50 and p99 of a heartbeat, of a save; processors of the server",
			users, users/int(beatEvery.Seconds()), users/tenth/int(saveEvery.Seconds())), "holdfast",
			fmt.Sprintf("%s; %s; %.2f%s", halves(g.beats), halves(g.saves), busy, late), "p99 100 ms")
		if late != "" {
			break
		}
		if max(quantile(g.beats, .99), quantile(g.saves, .99)) <= slow {
			quick = users
		}
		cores, memory = busy/float64(users), float64(rss-empty)/float64(users)
	}
	if cores == 0 {
		return errors.New("the machine is too busy: the server fell behind in the first step")
	}
	t.growthOnPaper(siteUsers*cores, siteUsers*memory, quick)
	return nil
}

// growthOnPaper adds the servers that more sites take, each using a half of a machine with two cores.
func (t *table) growthOnPaper(cores, memory float64, quick int) {
	each := max(1, int(1/cores))
	t.add("a site of 1,000 users who edit: processors, memory; users up to whom p99 was under 100 ms here", "holdfast",
		fmt.Sprintf("%.3f, %.0f MB; %d", cores, memory/1e6, quick), "")
	for _, sites := range []int{10, 100, 1000} {
		t.add(fmt.Sprintf("%d sites on paper: processors, and servers of two cores that are half busy", sites), "holdfast",
			fmt.Sprintf("%.1f, %d", cores*float64(sites), (sites+each-1)/each), "")
	}
}

// acquire lets users lock a document each until that many do.
func (g *population) acquire(users int) error {
	first := len(g.leases)
	g.leases, g.tokens = append(g.leases, make([]string, users-first)...), append(g.tokens, make([]int64, users-first)...)
	var group errgroup.Group
	group.SetLimit(clients)
	for i := first; i < users; i++ {
		group.Go(func() error {
			var granted struct {
				LeaseID string `json:"lease_id"`
				Token   int64  `json:"token"`
			}
			body := map[string]any{"paths": [][]string{{"documents", g.document(i)}}, "ttl_ms": 3_600_000}
			err := g.s.do("POST", "/api/locks", g.user(i), body, &granted)
			g.leases[i], g.tokens[i] = granted.LeaseID, granted.Token
			return err
		})
	}
	return group.Wait()
}

func (g *population) user(i int) string { return "user-" + strconv.Itoa(i) }

func (g *population) document(i int) string {
	return fmt.Sprintf("site-%d.%d", i/siteUsers, i%siteUsers)
}

// run sends the heartbeats and saves of all users for the time of one step, each at its planned time, and returns which
// share of them was answered in time. A duration begins at the planned time, so that a request that could not be sent
// counts too.
func (g *population) run() (share float64) {
	g.beats, g.saves = nil, nil
	users := len(g.leases)
	open := make(chan struct{}, inFlight)
	var answered atomic.Int64
	begin := time.Now()
	send := func(planned time.Time, into *[]time.Duration, request func() error) {
		defer func() { <-open }()
		err := request()
		took := time.Since(planned)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.failed = errors.Join(g.failed, err)
		*into = append(*into, took)
		if time.Since(begin) < stepTime+slow {
			answered.Add(1)
		}
	}
	pacer := func(every time.Duration, next func(k int), count int) {
		for k := range count {
			time.Sleep(time.Until(begin.Add(time.Duration(k) * every)))
			if time.Since(begin) > 2*stepTime {
				return // far behind
			}
			open <- struct{}{}
			next(k)
		}
	}
	beats, saves := int(stepTime/beatEvery)*users, int(stepTime/saveEvery)*users/tenth
	var pacers, requests sync.WaitGroup
	pacers.Go(func() {
		every := stepTime / time.Duration(beats)
		pacer(every, func(k int) {
			planned := begin.Add(time.Duration(k) * every)
			requests.Go(func() { send(planned, &g.beats, func() error { return g.beat(k % users) }) })
		}, beats)
	})
	pacers.Go(func() {
		every := stepTime / time.Duration(saves)
		pacer(every, func(k int) {
			planned := begin.Add(time.Duration(k) * every)
			requests.Go(func() { send(planned, &g.saves, func() error { return g.save(k * tenth % users) }) })
		}, saves)
	})
	pacers.Wait()
	requests.Wait()
	return float64(answered.Load()) / float64(beats+saves)
}

func (g *population) beat(i int) error {
	return g.s.do("PUT", "/api/locks/"+g.leases[i], g.user(i), nil, nil)
}

func (g *population) save(i int) error {
	return g.s.putAs(g.user(i), g.document(i), g.tokens[i], g.data)
}
