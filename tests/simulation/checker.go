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

	mixed      bool     // some tabs do not use the service
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

// belief is a lease that a program believes to hold.
type belief struct {
	tab      *tab
	domain   string // of the tokens: the server, or an origin without it
	lease    lock.Lease
	names    []name
	since    time.Time
	sleeps   int  // of the tab, at the time of the grant
	steal    bool // it was stolen
	remote   bool
	recorded bool    // its token comes from a record or a server, not from the clock
	within   *belief // the lease around it, or nil
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

// enclosingEnded reports whether a lease around this one has ended, or its editor gives it up.
func (b *belief) enclosingEnded() bool {
	for o := b.within; o != nil; o = o.within {
		if o.lease.Context().Err() != nil || o.edits != nil && !o.edits() {
			return true
		}
	}
	return false
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
	case passed, b.tab.gone(), sleeps > b.sleeps, b.enclosingEnded(), at.disturbedSince(window, b.remote):
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
