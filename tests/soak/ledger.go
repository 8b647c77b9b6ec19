// Package soak makes tabs, workers and servers work for a long time under all kinds of faults, and checks from
// outside that no promise is broken.
package soak

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// margin is the maximum difference of two readings of clocks that count whole milliseconds.
const margin = 5 * time.Millisecond

// landing is the time for which a steal by a client that has died may still take effect.
const landing = 3 * time.Second

// place is a point of the tree, as in an acquisition.
type place struct {
	Path   []string
	Shared bool
}

// excludes reports whether two places may not be held at the same time.
func (p place) excludes(q place) bool {
	short, long := p, q
	if len(p.Path) > len(q.Path) {
		short, long = q, p
	}
	switch {
	case !slices.Equal(short.Path, long.Path[:len(short.Path)]):
		return false
	case len(short.Path) == len(long.Path):
		return !short.Shared || !long.Shared
	}
	return !short.Shared // places below take their ancestors shared
}

// request is a client's request in a domain. A domain is a set of locks that exclude each other.
type request struct {
	Domain string
	Places []place
	Slots  int
	Steal  bool
}

func (r request) excludes(q request, slot, other int) bool {
	if r.Domain != q.Domain || r.Slots > 1 && q.Slots > 1 && slot != other {
		return false
	}
	return slices.ContainsFunc(r.Places, func(p place) bool { return slices.ContainsFunc(q.Places, p.excludes) })
}

// heldPeriod is one lease of a client. From its grant to its end, as confirmed later by the client, it is known to have
// been valid: the client had received no other message, and its time had not expired.
type heldPeriod struct {
	request
	client   string
	resource string
	token    int64
	slot     int
	asked    time.Duration
	from     time.Duration
	until    time.Duration
	answered time.Duration // the time of the client's last answer; its next report is later
	over     bool
	excused  bool // stolen, or its clock was set: it may overlap with others, and the token protects its writes
	accused  bool
}

// ledger records the holders and finds conflicts. Its times come from its caller, from one monotonic clock. It is not
// safe for concurrent use.
type ledger struct {
	waiting map[string]*heldPeriod // requests without a result, by client
	inside  map[string]*heldPeriod
	stays   []*heldPeriod // the recent ones
	steals  []steal
	highest map[string]mark          // by domain and resource: the highest token since the clock was set back,
	counted map[string]mark          // and the highest one that was counted in a record
	skewed  map[string]time.Duration // by prefix of clients: the time when their clock was last set

	grants, refused int
	longest         time.Duration
	slowest         string // the name and the client of the longest wait
	violations      []string
}

// steal is a request to steal, which takes effect at some moment before its end.
type steal struct {
	request
	client string
	end    time.Duration // 0 while it is open
	token  int64         // if it succeeded
}

type mark struct {
	token int64
	at    time.Duration
}

func newLedger() *ledger {
	return &ledger{waiting: map[string]*heldPeriod{}, inside: map[string]*heldPeriod{}, highest: map[string]mark{}, counted: map[string]mark{}, skewed: map[string]time.Duration{}}
}

func (l *ledger) violate(format string, values ...any) {
	l.violations = append(l.violations, fmt.Sprintf(format, values...))
}

// ask is called before a client asks for a lease.
func (l *ledger) ask(now time.Duration, client string, r request) {
	l.waiting[client] = &heldPeriod{request: r, client: client, asked: now}
	if !r.Steal {
		return
	}
	l.steals = append(l.steals, steal{request: r, client: client})
	for _, s := range l.inside {
		if s.excludes(r, -1, -1) {
			s.excused = true
		}
	}
}

// granted is called by a client before it uses its lease. counted means that the token comes from a record.
func (l *ledger) granted(now time.Duration, client, resource string, token int64, slot int, counted bool) {
	s := l.waiting[client]
	if s == nil {
		l.violate("%s has a lease and had not asked for it", client)
		return
	}
	delete(l.waiting, client)
	l.grants++
	l.waited(now, s)
	s.resource, s.token, s.slot, s.from, s.until, s.answered = resource, token, slot, now, now, now
	l.closeSteals(client, now, token)
	l.steals = slices.DeleteFunc(l.steals, func(t steal) bool { return t.end != 0 && t.end+landing < now })
	for _, t := range l.steals {
		stolen := t.end >= s.asked && t.token > s.token // before it could report the grant
		s.excused = s.excused || (t.end == 0 || t.end > now || stolen) && t.excludes(s.request, -1, -1)
	}
	s.excused = s.excused || l.skewedWithin(settling, now, client)
	if s.Slots > 1 && (slot < 0 || slot >= s.Slots) {
		l.violate("%s was given slot %d of %d", client, slot, s.Slots)
	}
	key := s.Domain + " " + resource
	// A client that used a clock that was set forward stays ahead of the others until they have caught up.
	if (!counted || l.rise(now, l.counted, key, s)) && !l.skewedWithin(leap+settling, now, client) {
		l.rise(now, l.highest, key, s)
	}
	l.inside[client] = s
	l.stays = append(slices.DeleteFunc(l.stays, func(old *heldPeriod) bool { return old.over && old.until+time.Minute < now }), s)
}

// waited records how long a client has waited, or has waited until now.
func (l *ledger) waited(now time.Duration, s *heldPeriod) {
	if took := now - s.asked; took > l.longest {
		l.longest, l.slowest = took, fmt.Sprintf("%s for %s %v, until %v", s.client, s.Domain, s.Places, now.Round(time.Millisecond))
	}
}

// rise checks a token: a client that asked after a grant gets a higher token. A client that asked before may only be
// late to report.
func (l *ledger) rise(now time.Duration, marks map[string]mark, key string, s *heldPeriod) bool {
	switch top := marks[key]; {
	case s.token > top.token:
		marks[key] = mark{s.token, now}
	case s.asked > top.at:
		l.violate("token %d of %s for %s is not above %d, which was granted before it asked", s.token, s.client, key, top.token)
		return false
	}
	return true
}

// confirm is called while a client holds a lease. left is the remaining time of the lease, counted from some moment
// after the client's last answer; it is negative if the lease has ended. confirm reports whether a store would accept
// a write with the client's token.
func (l *ledger) confirm(now time.Duration, client string, left time.Duration) bool {
	s := l.inside[client]
	if s == nil {
		return false
	}
	if left > 0 {
		s.until = max(s.until, s.answered+left)
	}
	s.answered = now
	l.compare(now, s)
	fresh := s.token >= l.highest[s.Domain+" "+s.resource].token || s.Slots > 1 || s.Places[0].Shared
	if !fresh {
		l.refused++
	}
	return fresh && left > 0
}

// left is called before a client releases its lease, and when the client knows that it has lost it.
func (l *ledger) left(now time.Duration, client string, left time.Duration) {
	l.confirm(now, client, left)
	l.end(client, now)
}

// failed is called by a client whose request was not granted.
func (l *ledger) failed(now time.Duration, client string) {
	delete(l.waiting, client)
	l.closeSteals(client, now+landing, 0)
}

// ended is called before the clients with a prefix are killed.
func (l *ledger) ended(now time.Duration, prefix string) {
	for client := range l.waiting {
		if strings.HasPrefix(client, prefix) {
			l.failed(now, client)
		}
	}
	for client := range l.inside {
		if strings.HasPrefix(client, prefix) {
			l.end(client, now)
		}
	}
}

// skew is called before the clocks of the clients with a prefix are set. Tokens that were not counted may be lower
// from then on, because they come from a clock.
func (l *ledger) skew(now time.Duration, prefix, domains string) {
	l.skewed[prefix] = now
	for client, s := range l.inside {
		s.excused = s.excused || strings.HasPrefix(client, prefix)
	}
	maps.DeleteFunc(l.highest, func(key string, _ mark) bool { return strings.Contains(key, domains) })
}

func (l *ledger) skewedWithin(span, now time.Duration, client string) bool {
	for prefix, at := range l.skewed {
		if now < at+span && strings.HasPrefix(client, prefix) {
			return true
		}
	}
	return false
}

// forgotten counts each client that has waited for longer than a limit as a violation.
func (l *ledger) forgotten(now, limit time.Duration) {
	for client, s := range l.waiting {
		l.waited(now, s)
		if now-s.asked > limit && !s.accused {
			l.violate("%s was left behind: it has waited for %v for %s %v", client, now-s.asked, s.Domain, s.Places)
			s.accused = true
		}
	}
}

func (l *ledger) end(client string, now time.Duration) {
	if s := l.inside[client]; s != nil {
		s.until, s.over = min(s.until, now), true
		delete(l.inside, client)
	}
}

func (l *ledger) closeSteals(client string, at time.Duration, token int64) {
	for i, t := range l.steals {
		if t.client == client && t.end == 0 {
			l.steals[i].end, l.steals[i].token = at, token
		}
	}
}

// compare looks for other leases that were known to be valid at the same time as this one.
func (l *ledger) compare(now time.Duration, s *heldPeriod) {
	for _, other := range l.stays {
		if other == s || !s.excludes(other.request, s.slot, other.slot) {
			continue
		}
		overlap := min(s.until, other.until, now) - max(s.from, other.from)
		if overlap <= margin || s.excused || other.excused || s.accused && other.accused {
			continue
		}
		s.accused, other.accused = true, true
		l.violate("double holder of %s: %s (token %d, %v) and %s (token %d, %v) for %v",
			s.Domain, s.client, s.token, s.Places, other.client, other.token, other.Places, overlap)
	}
}
