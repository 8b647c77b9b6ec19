package opfs

import (
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// claim writes a lease under a token greater than any before and than the wall time in
// milliseconds, so that tokens go on rising where the file was lost. The lease becomes
// part of what the client was granted of that name; where it was granted nothing here,
// the lock is kept by another mechanism, and the lease stands alone under the id given.
func (t *table) claim(client, id string, r lock.Record, now time.Time, stolen bool) (e *entry, replaced []*entry) {
	t.token = max(t.token+1, r.Token+1, now.UnixMilli())
	r.Token = t.token
	l := &lease{Record: r, ttl: r.ExpiresAt.Sub(r.AcquiredAt)}
	mine := t.unleased(client, r.Resource)
	if stolen {
		// A lease whose lock is elsewhere is robbed by a thief that was granted the name here, too.
		for _, other := range t.queue {
			if other.state == recorded && other.lease.Resource == r.Resource && (mine == nil || other.client != client) {
				replaced = append(replaced, other)
			}
		}
		t.remove(replaced...)
	}
	if mine != nil {
		mine.lease = l
		return mine, replaced
	}
	e = &entry{id: id, client: client, state: recorded, lease: l}
	t.queue = append(t.queue, e)
	return e, replaced
}

// unleased returns what a client was granted of a name and has no lease yet, or nil.
func (t *table) unleased(client, name string) *entry {
	for _, e := range t.queue {
		if e.client == client && e.state == granted && e.lease == nil && e.has(name) {
			return e
		}
	}
	return nil
}

func (e *entry) has(name string) bool {
	return slices.ContainsFunc(e.wants, func(w lock.Want) bool { return w.Name == name })
}

// leased returns the entry that carries a lease.
func (t *table) leased(leaseID string) *entry {
	for _, e := range t.queue {
		if e.lease != nil && e.lease.LeaseID == leaseID {
			return e
		}
	}
	return nil
}

// release removes a granted entry. Shared grants of one client are alike, and its leases
// may have been claimed in another order than granted: where that can be, the lease stays
// as a record until it is removed by its own id.
func (t *table) release(e *entry) (kept bool) {
	if e.lease != nil && slices.ContainsFunc(t.queue, func(other *entry) bool { return other != e && twins(e, other) }) {
		e.state, e.wants = recorded, nil
		return true
	}
	t.remove(e)
	if e.lease != nil {
		t.passOn(e)
	}
	return false
}

// passOn gives the lease of an entry that leaves to another one of its client that holds
// the same name and has none: a place of the project, perhaps, whose lock the lease was
// taken for.
func (t *table) passOn(e *entry) {
	if other := t.unleased(e.client, e.lease.Resource); other != nil {
		other.lease = e.lease
	}
}

// twins reports whether the leases of two entries may have been mixed up.
func twins(e, other *entry) bool {
	return other.client == e.client && other.lease != nil && other.lease.Resource == e.lease.Resource
}

// unlease removes a lease. Where another one of the client was mixed up with it, that one
// takes its place.
func (t *table) unlease(e *entry) (changed []*entry) {
	if e.state == recorded {
		t.remove(e)
		return []*entry{e}
	}
	gone := e.lease
	e.lease = nil
	for _, other := range t.queue {
		if other.client == e.client && other.state == recorded && other.lease.Resource == gone.Resource {
			e.lease = other.lease
			t.remove(other)
			return []*entry{e, other}
		}
	}
	return []*entry{e}
}
