package locks

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/locks/internal/waitgraph"
)

// Waiter is a request in the queue.
type Waiter struct {
	Holder Holder
	Paths  []Path
	Mode   Mode
	Since  time.Time

	place int64
	lease string
}

// Listing is a page of holders and waiters, each in order of arrival. The holders come first.
type Listing struct {
	Holders []Lease
	Waiters []Waiter
	// Next identifies the position after this page. It is empty on the last page.
	Next string
}

// MaxPage is the maximum number of entries on a page.
const MaxPage = 1000

// List reads a page of the leases and waiting requests that conflict with an exclusive lock on the path: those on the
// path itself, above it and below it. after is the Next of the previous page, or empty for the first page. A page
// shows one moment, at or after the call. An entry that exists during all pages is on one of them.
func (t *Table) List(ctx context.Context, p Path, after string, limit int) (Listing, error) {
	return t.ListVisible(ctx, p, after, limit, func([]Path) bool { return true })
}

// ListVisible is List for a reader that may see only some leases and requests, by their paths. visible must not call the table.
func (t *Table) ListVisible(ctx context.Context, p Path, after string, limit int, visible func([]Path) bool) (Listing, error) {
	if err := p.check(); err != nil {
		return Listing{}, err
	}
	from, err := parseCursor(after)
	if err != nil {
		return Listing{}, err
	}
	limit = max(1, min(limit, MaxPage))
	list, whole, err := t.readAll(ctx, p)
	if err == nil && !whole {
		list, err = t.listSeen(ctx, p, from, limit, visible)
	}
	if err != nil {
		return Listing{}, err
	}
	list.Holders = slices.DeleteFunc(list.Holders, func(l Lease) bool { return !visible(l.Paths) })
	list.Waiters = slices.DeleteFunc(list.Waiters, func(w Waiter) bool { return !visible(w.Paths) })
	return list.page(from, limit), nil
}

// Inspect returns all pages of List.
func (t *Table) Inspect(ctx context.Context, p Path) (holders []Lease, waiters []Waiter, err error) {
	for after := ""; ; {
		page, err := t.List(ctx, p, after, MaxPage)
		if err != nil {
			return nil, nil, err
		}
		holders, waiters = append(holders, page.Holders...), append(waiters, page.Waiters...)
		if after = page.Next; after == "" {
			return holders, waiters, nil
		}
	}
}

// readAll reads everything from the store. If there is too much, it returns whole = false.
func (t *Table) readAll(ctx context.Context, p Path) (list Listing, whole bool, err error) {
	var w preconditions
	asked := claim{Paths: []Path{p}, Mode: Exclusive, Slots: 1}
	t.mirror.mu.Lock()
	seen, _ := t.mirror.inTheWay(asked)
	t.mirror.mu.Unlock()
	if len(seen) >= maxNamed {
		return Listing{}, false, nil // etcd would count all of them, and all writes would wait meanwhile
	}
	w.clear(asked)
	w.first(asked)
	result, err := t.store.Commit(ctx, kv.Txn{Then: w.reads})
	if err != nil {
		return Listing{}, false, err
	}
	for _, read := range result.Reads {
		if len(read) >= maxNamed {
			return Listing{}, false, nil
		}
	}
	alive, err := t.alive(ctx, readConflicts(result.Reads).claims)
	if err != nil {
		return Listing{}, false, err
	}
	return Listing{Holders: t.name(alive), Waiters: waiters(result.Reads)}, true, nil
}

// page returns at most limit entries of a listing after a position.
func (l Listing) page(from cursor, limit int) (page Listing) {
	for _, h := range l.Holders {
		if from.waiting || !from.before(h.Token, h.name()) {
			continue
		}
		if len(page.Holders) == limit {
			page.Next = cursorBetween(page.Holders[limit-1], h).String()
			return page
		}
		page.Holders = append(page.Holders, h)
	}
	for i, w := range l.Waiters {
		if from.waiting && from.compare(w) >= 0 {
			continue
		}
		if len(page.Holders)+len(page.Waiters) == limit {
			page.Next = cursor{waiting: true}.String()
			if i > 0 {
				page.Next = cursorAfter(l.Waiters[i-1]).String()
			}
			return page
		}
		page.Waiters = append(page.Waiters, w)
	}
	return page
}

// cursor is a position in a listing: after a lease or after a waiting request. A lease is named by its token and its
// own name, since leases may share a token. Without a name, the position is after all leases with the token.
type cursor struct {
	waiting bool
	place   int64
	lease   string
}

func cursorAfter(w Waiter) cursor { return cursor{true, w.place, w.lease} }

// cursorBetween returns the position between two successive leases. It has a name only if it needs one: servers of
// former versions do not know names.
func cursorBetween(last, next Lease) cursor {
	if last.Token == next.Token {
		return cursor{place: last.Token, lease: last.name()}
	}
	return cursor{place: last.Token}
}

// before reports whether a lease comes after the position.
func (c cursor) before(token int64, lease string) bool {
	return c.place < token || c.place == token && c.lease != "" && c.lease < lease
}

func (c cursor) compare(w Waiter) int {
	return cmp.Or(cmp.Compare(c.place, w.place), strings.Compare(c.lease, w.lease))
}

func (c cursor) String() string {
	switch {
	case c.waiting:
		return fmt.Sprint("w", c.place, ".", c.lease)
	case c.lease != "":
		return fmt.Sprint("h", c.place, ".", c.lease)
	}
	return fmt.Sprint("h", c.place)
}

func parseCursor(text string) (c cursor, err error) {
	if text == "" {
		return cursor{}, nil
	}
	digits, lease, _ := strings.Cut(text[1:], ".")
	place, err := strconv.ParseInt(digits, 10, 64)
	c = cursor{text[0] == 'w', place, lease}
	if err != nil || place < 0 || c.String() != text {
		return c, &InvalidError{"after must be the next of the previous page"}
	}
	return c, nil
}

// catchUpKey is a key that the server writes to learn the present revision, which its view must then reach.
const catchUpKey = prefix + "heard"

// catchUp waits until this server's view contains everything that is in the store now.
func (t *Table) catchUp(ctx context.Context) error {
	result, err := t.commit(ctx, kv.Txn{Then: []kv.Op{kv.Put(catchUpKey, nil)}})
	if err != nil {
		return err
	}
	return t.catchUpTo(ctx, result.Revision)
}

// listSeen lists this server's view after it has caught up with the store. It returns at least the page.
func (t *Table) listSeen(ctx context.Context, p Path, from cursor, limit int, visible func([]Path) bool) (list Listing, err error) {
	if err := t.catchUp(ctx); err != nil {
		return list, err
	}
	want := claim{Paths: []Path{p}, Mode: Exclusive}.want()
	if !from.waiting {
		list.Holders = t.heldAfter(want, from, limit, visible)
	}
	if len(list.Holders) <= limit {
		list.Waiters = t.waitingAfter(want, from, limit, visible)
	}
	return list, nil
}

// few is how many leases are collected and sorted, or looked at, while the mirror is locked. Tests change it.
var few = 5000

// heldAfter returns the visible leases that conflict with a want after a position, in order. It returns at most one more than
// limit.
func (t *Table) heldAfter(w waitgraph.Want, from cursor, limit int, visible func([]Path) bool) []Lease {
	m := t.mirror
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []*held
	collected := 0
	all := m.graph.Holders(w, func(c *waitgraph.Claim) bool {
		if h := m.held[c.ID]; from.before(h.token, h.Lease) && visible(h.Paths) {
			found = append(found, h)
		}
		collected++
		return collected < few
	})
	if all {
		slices.SortFunc(found, (*held).compare)
		return present(found, limit)
	}
	// With so many conflicting leases, a scan of all leases in order soon finds a page.
	found = found[:0]
	for {
		step, last := m.order.after(from, few)
		for _, h := range step {
			if m.graph.Conflicts(w, h.Lease) && visible(h.Paths) {
				found = append(found, h)
			}
		}
		list := present(found, limit)
		if len(list) > limit || len(step) == 0 {
			return list
		}
		from = last
		m.mu.Unlock() // let other goroutines continue
		m.mu.Lock()
	}
}

// present converts the leases that have not expired, at most one more than limit.
func present(found []*held, limit int) (list []Lease) {
	now := time.Now()
	for _, h := range found {
		if h.beatAt != 0 && !h.deadline.After(now) {
			continue
		}
		expires := h.expires
		if expires.IsZero() {
			expires = time.UnixMilli(h.Locked).Add(h.ttl())
		}
		if list = append(list, h.lease(h.token, expires)); len(list) > limit {
			break
		}
	}
	return list
}

// waitingAfter returns the visible requests that conflict with a want after a position, in order. It returns at most one more
// than limit.
func (t *Table) waitingAfter(w waitgraph.Want, from cursor, limit int, visible func([]Path) bool) (list []Waiter) {
	m := t.mirror
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, ticket := range m.graph.Waiting(w, from.place, limit+1, func(lease string) bool {
		ticket := m.tickets[lease]
		return from.compare(ticket.waiter()) < 0 && visible(ticket.Paths)
	}) {
		list = append(list, m.tickets[ticket.ID].waiter())
	}
	return list
}

func (t *ticket) waiter() Waiter {
	return Waiter{Holder{t.Holder, t.Name}, t.Paths, t.Mode, time.UnixMilli(t.Locked), t.Place, t.Lease}
}

// waiters collects the waiting requests from a transaction's reads, in order of arrival.
func waiters(reads [][]kv.Entry) []Waiter {
	var list []Waiter
	seen := map[string]bool{}
	for _, read := range reads {
		for _, e := range read {
			if !strings.HasPrefix(e.Key, waitPrefix) {
				continue
			}
			if t, ok := decodeTicket(e); ok && !seen[t.Lease] {
				seen[t.Lease] = true
				list = append(list, t.waiter())
			}
		}
	}
	slices.SortFunc(list, func(a, b Waiter) int { return cursorAfter(a).compare(b) })
	return list
}
