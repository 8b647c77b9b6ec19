package simulation

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// checker observes the programs and knows their faults. It does not depend on the code under test.
type checker struct {
	w *world

	mu      sync.Mutex
	beliefs []*belief
	tokens  map[string]mark // the highest token of each name and mode in each domain
	waits   map[*waiter]bool
	held    map[*origin]string // the holders at the last look at the waiters
	moved   map[*origin]bool

	service    *service // nil without one
	heldThere  string   // on the server
	movedThere bool
	abandoned  map[int64]time.Time // since when no program has them, by token
}

// mark is a granted token and its holder.
type mark struct {
	token int64
	tab   *tab
	what  string
}

// again reports whether a lease may have the token of the mark: it comes from the clock, and the tab that had it ended before
// the clock went on.
func (m mark) again(token int64, kind string) bool {
	return kind == clockTokens && token == m.token && m.tab.gone()
}

// The kinds of tokens: counted in a record, or read from the clock.
const recordTokens, clockTokens = "record", "clock"

func newChecker(w *world) *checker {
	return &checker{w: w, tokens: make(map[string]mark), waits: make(map[*waiter]bool),
		held: make(map[*origin]string), abandoned: make(map[int64]time.Time), moved: make(map[*origin]bool)}
}

// name is a name that a lease holds, with its mode.
type name struct {
	name      string
	exclusive bool
}

// names returns the names of a lease on the places of o: the place in its mode, and every place above it shared.
func names(o lock.AcquireOptions, slot int) (all []name) {
	paths := o.Paths
	if paths == nil {
		paths = [][]string{o.Path}
	}
	for _, path := range paths {
		for i := range path {
			all = append(all, name{"/" + strings.Join(path[:i], "/"), false})
		}
		at := "/" + strings.Join(path, "/")
		all = append(all, name{at, o.Mode != lock.Shared && o.Slots < 2})
		if o.Slots > 1 {
			all = append(all, name{at + "//slot " + strconv.Itoa(slot), true})
		}
	}
	return all
}

func conflict(a, b []name) bool {
	for _, x := range a {
		for _, y := range b {
			if x.name == y.name && (x.exclusive || y.exclusive) {
				return true
			}
		}
	}
	return false
}

// belief is a lease that a program believes to hold.
type belief struct {
	tab      *tab
	domain   string // leases exclude each other within a domain
	lease    lock.Lease
	names    []name
	since    time.Time
	sleeps   int  // of the tab, at the time of the grant
	steal    bool // it was stolen
	remote   bool
	recorded bool // its token comes from a record or a server, not from the clock
	released bool
	passed   bool        // its editor has told the server that the lease is over, because it passes the lock on
	edits    func() bool // whether its editor lets the user type; nil for another program
}

// live reports whether the program may now believe in its lease.
func (b *belief) live() bool {
	return !b.released && (b.edits == nil || b.edits()) && b.tab.runs(0) && b.lease.Err() == nil && b.lease.Context().Err() == nil
}

func (b *belief) String() string {
	var held []string
	for _, n := range b.names {
		if n.exclusive {
			held = append(held, n.name)
		} else {
			held = append(held, n.name+" (shared)")
		}
	}
	return b.tab.name + " with token " + strconv.FormatInt(b.lease.Token, 10) + " of " + strings.Join(held, ", ")
}

// notice is the maximum time until a running program notices that its lock was stolen.
const notice = 500 * time.Millisecond

// granted records a lease that a program has just received.
func (c *checker) granted(b *belief) {
	b.since = time.Now()
	_, b.sleeps = b.tab.slept()
	c.w.count("grants")
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, other := range c.beliefs {
		if other.domain != b.domain || !other.live() || !conflict(other.names, b.names) {
			continue
		}
		if c.mayNotKnow(other, b) {
			time.AfterFunc(notice, func() { c.both(other, b) })
			continue
		}
		c.w.found("exclusion", "%s was granted while %s holds", b, other)
	}
	c.rising(b)
	c.beliefs = append(c.beliefs, b)
}

// mayNotKnow reports whether a holder may still believe in its lease for a moment: the lease was stolen, or the tab
// has just resumed.
func (c *checker) mayNotKnow(holder, successor *belief) bool {
	return holder.tab.at == successor.tab.at && holder.tab.at.stolenSince(time.Now().Add(-notice)) || !holder.tab.runs(notice)
}

// both checks, a while after the second grant, whether two programs believe in leases that exclude each other.
func (c *checker) both(a, b *belief) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.live() && b.live() && a.tab.runs(notice) && b.tab.runs(notice) {
		c.w.found("exclusion", "%s and %s both hold", a, b)
	}
}

// alone checks, when a user types in an editor, that no other program believes in a lease that excludes the editor's.
func (c *checker) alone(b *belief) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, other := range c.beliefs {
		if other != b && b.live() && other.domain == b.domain && other.live() && conflict(other.names, b.names) &&
			!c.mayNotKnow(other, b) && !c.mayNotKnow(b, other) {
			c.w.found("exclusion", "%s types while %s holds", b, other)
		}
	}
}

// woken checks, a while after a tab resumed, whether it still believes in a lease that another program has.
func (c *checker) woken(t *tab) {
	time.AfterFunc(notice, func() {
		c.mu.Lock()
		all := append([]*belief(nil), c.beliefs...)
		c.mu.Unlock()
		for _, a := range all {
			for _, b := range all {
				if a.tab == t && b.tab != t && a.domain == b.domain && conflict(a.names, b.names) {
					c.both(a, b)
				}
			}
		}
	})
}

// rising checks that the token is higher than the tokens of all earlier leases that the lease excludes.
func (c *checker) rising(b *belief) {
	if b.tab.at.stolenSince(time.Now().Add(-notice)) {
		return // a victim that does not know yet may have received a token after the stealer
	}
	if b.tab.at.clock.wasSetBack() && (!b.recorded || b.tab.at.faults.failedSince(c.w.began)) {
		return // without a record, tokens come from the clock
	}
	kind := clockTokens
	if b.recorded {
		kind = recordTokens
	}
	for _, n := range b.names {
		key := strings.Join([]string{b.domain, kind, n.name}, " ")
		for _, mode := range []string{"exclusive", "shared"} {
			if m, ok := c.tokens[key+" "+mode]; ok && (n.exclusive || mode == "exclusive") && m.token >= b.lease.Token && !m.again(b.lease.Token, kind) {
				c.w.found("tokens", "%s came after %s", b, m.what)
			}
		}
	}
	for _, n := range b.names {
		mode := "shared"
		if n.exclusive {
			mode = "exclusive"
		}
		key := strings.Join([]string{b.domain, kind, n.name, mode}, " ")
		if m := c.tokens[key]; b.lease.Token > m.token {
			c.tokens[key] = mark{b.lease.Token, b.tab, b.String()}
		}
	}
}

// releases records that a program is about to release its lease. It reports whether the lease was passed on before.
func (c *checker) releases(b *belief) (passed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	passed, b.released = b.passed, true
	for i, other := range c.beliefs {
		if other == b {
			c.beliefs = append(c.beliefs[:i], c.beliefs[i+1:]...)
			break
		}
	}
	return passed
}

// passed records that a tab has told the server that a lease of its editor is over, because it passes the lock on.
func (c *checker) passed(t *tab, token int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.beliefs {
		if b.edits != nil && !b.passed && b.tab == t && b.lease.Token == token {
			b.passed = true
			c.w.count("passed on")
		}
	}
}

// ended records that a lease ended without a release. There must be a reason.
func (c *checker) ended(b *belief) {
	err, passed := b.lease.Err(), c.releases(b)
	_, sleeps := b.tab.slept()
	window := b.since.Add(-slack)
	if recent := time.Now().Add(-2 * b.lease.TTL); recent.After(window) {
		window = recent
	}
	switch at := b.tab.at; {
	case passed, b.tab.gone(), sleeps > b.sleeps, at.disturbedSince(window, b.remote):
	case errors.Is(err, lock.ErrLost) && at.stolenSince(b.since.Add(-notice)):
	default:
		c.w.found("lost", "%s lost its lease for no reason: %v", b, err)
	}
}

// call checks that a call settles within its limit, counting only the time in which its tab runs.
func (c *checker) call(t *tab, what string, limit time.Duration, f func(context.Context)) {
	began := time.Now()
	asleep, _ := t.slept()
	f(context.Background())
	now, _ := t.slept()
	if took := time.Since(began) - (now - asleep); took > limit && !t.gone() {
		c.w.found("settled", "%s: %s took %s, longer than %s", t.name, what, took.Round(time.Millisecond), limit)
	}
}

// takenFrom reports a takeover from a tab that runs and believes in a lease. If the wall clock was set, the lease may have ended by it.
func (c *checker) takenFrom(at *origin, stealer *tab, holder string) {
	if at.clock.setSince(time.Now().Add(-time.Minute)) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.beliefs {
		if b.tab.at == at && b.tab.name == holder && !b.released && b.lease.Err() == nil && b.tab.runs(watchEvery) && b.tab != stealer {
			c.w.found("taken", "%s takes over from %s", stealer.name, b)
		}
	}
}
