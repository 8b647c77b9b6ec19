package locks

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// Acquire takes all paths of a request, or none.
//
// It fails with *[DeniedError] if other leases or waiters conflict with the request, and still do after r.Wait. It
// fails with [ErrDeadlock] if the request would wait in a cycle, with [ErrReplaced], with *[InvalidError], and with
// the store's errors. When ctx ends, Acquire gives up its place in the queue and returns ctx's error. If the grant
// was just being made, it returns the lease instead, see [Table.Withdraw]. After an error of the store the grant may
// have been made. A client that asks again for a document or with a ticket then gets that lease. Any other lease
// expires.
func (t *Table) Acquire(ctx context.Context, r Request) (Lease, error) {
	r, err := r.normal()
	if err != nil {
		return Lease{}, err
	}
	for {
		own := newTicket(r, time.Now())
		if own.tooWide() {
			return Lease{}, errTooWide
		}
		lease, err := t.acquire(ctx, r, own)
		if !errors.Is(err, errGranted) && !errors.Is(err, errOwnLease) {
			return lease, err
		}
	}
}

func (t *Table) acquire(ctx context.Context, r Request, own *ticket) (Lease, error) {
	if mine, ok := t.seenGranted(own); ok {
		if lease, err := t.repeat(ctx, own, mine); !errors.Is(err, ErrNotFound) {
			return lease, err
		}
	}
	if err := t.mayHaveMore(ctx, own, r); err != nil {
		return Lease{}, err
	}
	mayGrow := t.mayGrow(own, r) // before the request ends a lease that it replaces
	// The table first checks its own view: if it shows a conflicting lease, the store need not search all waiters.
	conflicts, err := t.firstConflicts(ctx, own)
	if err != nil {
		return Lease{}, err
	}
	for {
		if conflicts.free() {
			if mayGrow != nil {
				return Lease{}, mayGrow
			}
			lease, result, err := t.grab(ctx, own)
			if err != nil || result.Held {
				return lease, err
			}
			conflicts = readConflicts(result.Reads)
		}
		if replaced := r.passedOn(conflicts.claims); len(replaced) > 0 {
			r.Queued = t.passOn(ctx, r, own, replaced)
			return t.line(ctx, r, own)
		}
		lease, undecided, err := t.makeWay(ctx, r, own, &conflicts)
		if !undecided || err != nil {
			return lease, err
		}
		if conflicts.free() {
			continue
		}
		if r.Wait > 0 && mayGrow != nil {
			return Lease{}, mayGrow
		}
		if r.Wait > 0 {
			return t.line(ctx, r, own)
		}
		if conflicts.confirm == nil || t.confirmed(ctx, conflicts.confirm) {
			t.config.Metrics.Conflicts.Inc()
			return Lease{}, &DeniedError{Holders: t.name(conflicts.claims)}
		}
		conflicts = found{}
	}
}

// makeWay ends or extends the conflicting claims where the request may. If it did, or if a slot is free, it empties
// conflicts so that the caller asks the store. undecided is false when there is an answer.
func (t *Table) makeWay(ctx context.Context, r Request, own *ticket, conflicts *found) (lease Lease, undecided bool, err error) {
	if mine, ok := again(r, own, conflicts.claims); ok {
		lease, err := t.repeat(ctx, own, mine)
		if errors.Is(err, ErrNotFound) {
			*conflicts = found{} // it has just ended
			return Lease{}, true, nil
		}
		return lease, false, err
	}
	moved, err := t.replace(ctx, r, conflicts.claims)
	if err == nil && !moved {
		moved, err = t.clearOverdue(ctx, conflicts.claims)
	}
	if left := r.left(conflicts.claims); err == nil && !moved && left != nil {
		if conflicts.confirm == nil || t.confirmed(ctx, conflicts.confirm) {
			return Lease{}, false, left
		}
		moved = true
	}
	if err != nil {
		return Lease{}, false, err
	}
	if own.manySlots() && conflicts.confirm == nil && !moved {
		*conflicts, err = t.glanceNow(ctx, own)
		return Lease{}, true, err
	}
	if slot, ok := conflicts.freeSlot(own.claim); ok && conflicts.confirm == nil {
		own.Slot, moved = slot, true
	}
	if moved {
		*conflicts = found{}
	}
	return Lease{}, true, nil
}

// glance returns the conflicts with a request that this server knows.
func (t *Table) glance(own *ticket) (conflicts found) {
	m := t.mirror
	m.mu.Lock()
	defer m.mu.Unlock()
	ahead := m.graph.Before(own.want())
	own.Slot = ahead.Slot
	if ahead.Free() {
		return conflicts
	}
	conflicts.claims, conflicts.waited = m.inTheWay(own.claim)
	if ahead.Ticket != nil {
		conflicts.confirm = append(conflicts.confirm, kv.Exists(m.tickets[ahead.Ticket.ID].waitKeys()[0]))
		for _, s := range conflicts.claims { // a refusal names them
			conflicts.confirm = append(conflicts.confirm, kv.CreatedAt(s.key, s.token))
		}
	}
	for _, c := range ahead.Claims { // one claim, or all claims that hold the slots
		s := m.held[c.ID].storedLease()
		conflicts.confirm = append(conflicts.confirm, kv.CreatedAt(s.key, s.token))
	}
	return conflicts
}

// firstConflicts is glance, and glanceNow if more leases conflict than one transaction can confirm.
func (t *Table) firstConflicts(ctx context.Context, own *ticket) (found, error) {
	if conflicts := t.glance(own); len(conflicts.confirm) <= kv.MaxOps {
		return conflicts, nil
	}
	return t.glanceNow(ctx, own)
}

// glanceNow is glance once this server's view contains everything that is in the store now.
func (t *Table) glanceNow(ctx context.Context, own *ticket) (found, error) {
	if err := t.catchUp(ctx); err != nil {
		return found{}, err
	}
	return t.glance(own), nil
}

// confirmed reports whether the store still matches this server's view. Conditions that no transaction can have are those of [Table.glanceNow].
func (t *Table) confirmed(ctx context.Context, seen []kv.Cond) bool {
	if len(seen) > kv.MaxOps {
		return true
	}
	result, err := t.commit(ctx, kv.Txn{If: seen})
	return err == nil && result.Held
}

// grab makes the claims if nothing conflicts with them. The grant removes the ticket.
func (t *Table) grab(ctx context.Context, own *ticket) (Lease, kv.Result, error) {
	c := own.claim
	w := own.preconditions()
	now := time.Now()
	c.Locked = now.UnixMilli()
	expires := now.Add(c.ttl())
	keys, text, lease := c.keys(), c.encode(), c.lease(0, expires)
	then := append(make([]kv.Op, 0, usual), kv.Put(beatOf(keys[0]), encodeBeat(expires)))
	for _, key := range keys {
		then = append(then, kv.Put(key, text))
	}
	if asked, needed := c.asked(); needed {
		then = append(then, kv.Put(asked, []byte(keys[0])))
	}
	then = append(then, own.removal()...)
	then = append(then, t.record(Change{Locked: true, Lease: lease})...)
	if len(w.conditions) > kv.MaxOps || len(then) > kv.MaxOps {
		return Lease{}, kv.Result{}, errTooWide
	}
	t.mirror.own.make(c, expires)
	result, err := t.commit(ctx, kv.Txn{If: w.conditions, Then: then, Else: w.reads, Apart: holderApart + c.Holder})
	conflicts := readConflicts(result.Reads)
	switch {
	case errors.Is(err, kv.ErrTooLarge):
		err = errTooWide
	case err == nil && conflicts.gone:
		err = ErrGivenUp
	case err == nil && conflicts.granted > 0:
		err = t.grantedBefore(ctx, own, conflicts)
	}
	if err != nil || !result.Held {
		t.mirror.own.drop(c)
		return Lease{}, result, err
	}
	t.mirror.note(c, result.Revision)
	t.config.Metrics.Grants.Inc()
	lease.Token = result.Revision
	return lease, result, nil
}

// preconditions returns the conditions on which the ticket is granted.
func (t *ticket) preconditions() (w preconditions) {
	w.clear(t.claim)
	if t.joined > 0 {
		w.add(t.stub, kv.Holds(t.stub, t.text), kv.Read(t.stub))
	} else {
		w.first(t.claim)
		if asked, needed := t.asked(); needed {
			w.add(asked, kv.Absent(asked), kv.Read(asked))
		}
	}
	if t.named() {
		w.add(t.gone(), kv.Absent(t.gone()), kv.Read(t.gone()))
	}
	return w
}

// commit runs a transaction to its end even if ctx ends meanwhile. So only the store can leave the outcome unknown.
func (t *Table) commit(ctx context.Context, txn kv.Txn) (kv.Result, error) {
	if ctx.Err() != nil {
		return kv.Result{}, context.Cause(ctx)
	}
	return t.store.Commit(context.WithoutCancel(ctx), txn)
}

// record returns the operations that record the events of all documents among a lease's paths.
func (t *Table) record(c Change) []kv.Op {
	var ops []kv.Op
	for _, document := range c.Lease.documents() {
		ops = append(ops, t.config.Record(document, c)...)
	}
	return ops
}

// documents returns the documents whose events include the lease.
func (l Lease) documents() (documents []string) {
	for _, p := range l.Paths {
		if document, ok := p.Document(); ok && l.Records(p) {
			documents = append(documents, document)
		}
	}
	return documents
}

// Records reports whether the beginning and the end of a lease are events of a document. Only exclusive leases on the
// document itself are. A document may have several shared leases, several slots, or leases above or below it, so the
// end of one does not mean that the document is free.
func (l Lease) Records(document Path) bool {
	return whole(l.Mode, l.Slots) && slices.ContainsFunc(l.Paths, func(p Path) bool { return slices.Equal(p, document) })
}

// found is the set of conflicts with a request: either those of a refused transaction or those in this server's view.
type found struct {
	claims  []storedLease
	waited  bool
	stub    []byte
	gone    bool   // the acquisition has been given up
	granted int64  // the revision at which a request with the same ticket got its lease; 0 for none
	home    string // the first key of that lease
	// confirm holds while the store matches this server's view. It is nil for an answer of the store.
	confirm []kv.Cond
}

func (f found) free() bool { return len(f.claims) == 0 && !f.waited }

// storedLease is a lease in the store: its claim, the key of its first path and its token.
type storedLease struct {
	claim
	key   string
	token int64
}

// readConflicts collects the conflicts from a transaction's reads.
func readConflicts(reads [][]kv.Entry) found {
	var f found
	seen := map[string]bool{} // the values of claims, which a lease has at each of its paths
	for _, entries := range reads {
		for _, e := range entries {
			switch {
			case strings.HasPrefix(e.Key, waitPrefix):
				f.waited = true
				continue
			case strings.HasPrefix(e.Key, stubPrefix):
				f.stub = e.Value
				continue
			case strings.HasPrefix(e.Key, gonePrefix):
				f.gone = true
				continue
			case strings.HasPrefix(e.Key, askedPrefix):
				f.granted, f.home = e.Modified, string(e.Value)
				continue
			}
			if seen[string(e.Value)] {
				continue
			}
			seen[string(e.Value)] = true
			if other, ok := decodeClaim(e); ok {
				f.claims = append(f.claims, storedLease{other, e.Key, e.Created})
			}
		}
	}
	return f
}

// freeSlot returns the lowest free slot, if all conflicts are holders of slots of the same places.
func (f found) freeSlot(c claim) (int, bool) {
	taken := map[int]bool{}
	for _, s := range f.claims {
		if !c.sharesPlacesWith(s.claim) {
			return 0, false
		}
		taken[s.Slot] = true
	}
	slot := 0
	for taken[slot] {
		slot++
	}
	return slot, len(taken) > 0 && !f.waited && slot < c.Slots
}

// clearOverdue ends the expired leases among the claims, and reports whether there were any.
func (t *Table) clearOverdue(ctx context.Context, claims []storedLease) (bool, error) {
	cleared := false
	for _, s := range claims {
		ended, err := t.endIfDue(ctx, s)
		if err != nil {
			return false, err
		}
		cleared = cleared || ended
	}
	return cleared, nil
}

// name converts conflicting claims to leases, oldest first. Their expiry is the last one that this server knows.
func (t *Table) name(claims []storedLease) []Lease {
	t.mirror.mu.Lock()
	defer t.mirror.mu.Unlock()
	list := make([]Lease, len(claims))
	for i, s := range claims {
		expires := time.UnixMilli(s.Locked).Add(s.ttl())
		if h := t.mirror.held[s.Lease]; h != nil && !h.expires.IsZero() {
			expires = h.expires
		}
		list[i] = s.lease(s.token, expires)
	}
	slices.SortFunc(list, func(a, b Lease) int {
		return cmp.Or(cmp.Compare(a.Token, b.Token), strings.Compare(a.name(), b.name()))
	})
	return list[:min(len(list), maxNamed)]
}
