package opfs

import (
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// claim writes a lease under a token greater than any before and than the wall time in milliseconds, so that tokens
// keep rising after the file was lost. The lease becomes part of the entry that was granted to the client for that
// name. Without such an entry another mechanism keeps the lock, and the lease gets an entry of its own under the given
// id. A record that an earlier attempt left for the lease is replaced: others may have received higher tokens since.
func (t *table) claim(client, id string, r lock.Record, now time.Time, stolen bool) (e *entry, replaced []*entry) {
	if left := t.leased(r.LeaseID); left != nil {
		t.unlease(left)
	}
	t.token = max(t.token+1, r.Token+1, now.UnixMilli())
	r.Token = t.token
	l := &lease{Record: r, ttl: r.ExpiresAt.Sub(r.AcquiredAt)}
	mine := t.unleased(client, r.Resource)
	if stolen {
		// A client that steals a lease whose lock another mechanism keeps may have a grant of the name here, too.
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
	e = &entry{id: id, client: client, state: recorded, wants: wanted(r), lease: l}
	t.queue = append(t.queue, e)
	return e, replaced
}

// wanted returns what the lease of a record locks, if that is known. It blocks nobody while the entry is only recorded.
func wanted(r lock.Record) []lock.Want {
	if r.Mode == "" {
		return nil
	}
	return []lock.Want{{Name: r.Resource, Mode: r.Mode}}
}

// unleased returns an entry of the client that is granted the name and has no lease yet, or nil. An entry with further names is for a
// place, whose lock does not end with this lease.
func (t *table) unleased(client, name string) *entry {
	for _, e := range t.queue {
		if e.client == client && e.state == granted && e.lease == nil && len(e.wants) == 1 && e.has(name) {
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

// record returns the lease of a resource whose record others read, or nil. It is the one with the highest token, because the others belong to
// holders whose lease was stolen. If that one is shared, it is the shared one that expires last: its holder may live until then.
func (t *table) record(resource string) (found *lease) {
	for _, e := range t.queue {
		if l := e.lease; l != nil && l.Resource == resource && (found == nil || l.Token > found.Token) {
			found = l
		}
	}
	for _, e := range t.queue {
		if l := e.lease; l != nil && l.Resource == resource && found.Mode == lock.Shared && l.Mode == lock.Shared && l.ExpiresAt.After(found.ExpiresAt) {
			found = l
		}
	}
	return found
}

// release removes a granted entry. Shared grants of one client are interchangeable, and their leases may have been
// claimed in another order than granted. If that is possible, the lease stays as a record until it is removed by its
// own id.
func (t *table) release(e *entry) {
	if e.lease != nil && slices.ContainsFunc(t.queue, func(other *entry) bool { return other != e && interchangeable(e, other) }) {
		e.state, e.wants = recorded, nil
		return
	}
	t.remove(e)
	if e.lease != nil {
		t.passOn(e)
	}
}

// passOn gives the lease of an entry that leaves to another entry of its client that holds the same name and has no
// lease. The lease may have been taken for that entry's lock.
func (t *table) passOn(e *entry) {
	if other := t.unleased(e.client, e.lease.Resource); other != nil {
		other.lease = e.lease
	}
}

// interchangeable reports whether the leases of two entries may have been mixed up.
func interchangeable(e, other *entry) bool {
	return other.client == e.client && other.lease != nil && other.lease.Resource == e.lease.Resource
}

// unlease removes a lease. If another lease of the client may have been mixed up with it, that lease takes its place.
func (t *table) unlease(e *entry) {
	if e.state == recorded {
		t.remove(e)
		return
	}
	gone := e.lease
	e.lease = nil
	for _, other := range t.queue {
		if other.client == e.client && other.state == recorded && other.lease.Resource == gone.Resource {
			e.lease = other.lease
			t.remove(other)
			return
		}
	}
}
