//go:build js && wasm

package opfs

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
)

// Claim implements [lock.Records]. If this client was granted the resource here, the lease becomes part of that entry,
// and others take it over once it has expired. Otherwise the lease stands beside the lock of another mechanism.
func (c *FileLocks) Claim(ctx context.Context, r lock.Record, stolen bool) (token int64, err error) {
	id := lock.NewID()
	var earlier []string // clients with a record of the resource
	err = c.steps.visit(ctx, func(s *session) error {
		earlier = nil
		if full := s.hasRoom(&entry{id: id, client: s.me, lease: &lease{Record: r}}); full != nil {
			return full
		}
		e := s.t.leased(r.LeaseID)
		if e == nil || e.lease.Token != token { // not yet claimed by this call
			if (!stolen || len(c.steps.requests.grants) == 0) && s.excluded(r, stolen) {
				return lock.ErrDenied
			}
			var replaced []*entry
			e, replaced = s.t.claim(s.me, id, r, s.now.Wall, stolen)
			s.notifyLost(replaced)
			s.changed = true
		}
		token = e.lease.Token
		for _, other := range s.t.queue {
			if other.state == recorded && other.lease.Resource == r.Resource && other.client != s.me {
				earlier = append(earlier, other.client)
			}
		}
		return nil
	})
	if err == nil && len(earlier) > 0 {
		c.maintenance.work.Go(func() { c.tidy(earlier) })
	}
	return token, err
}

// excluded reports whether the table has a live holder of the resource that excludes the lease, although the lease's lock was granted: the
// site's data was cleared while that client held it. If the lock of another mechanism was stolen, that client may be frozen with its
// entry here: it excludes nobody any more.
func (s *session) excluded(r lock.Record, stolen bool) bool {
	lease := &entry{client: s.me, wants: wanted(r)}
	for _, e := range s.t.queue {
		if e.state == granted && e.client != s.me && e.lease != nil && conflict(e, lease) && !s.over(e.lease) {
			if stolen {
				e.lease.ExpiresAt = time.Time{}
				continue
			}
			s.look.clients = append(s.look.clients, e.client)
			return true
		}
	}
	return false
}

// tidy removes the records of clients that are gone. The lease that was claimed does not wait for this.
func (c *FileLocks) tidy(clients []string) {
	ctx, stop := context.WithTimeout(c.steps.life, stepLimit)
	defer stop()
	if wait.For(ctx, fastest) == nil && c.steps.liveness.investigate(ctx, suspects{clients: clients}) {
		_ = c.steps.revisit(ctx, nothing)
	}
}

// superseded reports whether another client has renewed a later lease of the same resource that excludes the lease of e. A lease that was
// never renewed may not have begun: its lock was stolen before it was claimed, and the lease of e is the stealer's.
func (t *table) superseded(e *entry) bool {
	for _, other := range t.queue {
		l := other.lease
		if l != nil && l.Token > e.lease.Token && l.Resource == e.lease.Resource && l.ExpiresAt.Sub(l.AcquiredAt) > l.ttl && other.client != e.client && conflict(other, e) {
			return true
		}
	}
	return false
}

// Renew implements [lock.Records]. It restores a record whose file was deleted or damaged, but not a record that was
// stolen, replaced or taken over. A later lease of another client that excludes this one ends it, once renewed.
func (c *FileLocks) Renew(ctx context.Context, r lock.Record) error {
	err := c.steps.visit(ctx, func(s *session) error {
		e := s.t.leased(r.LeaseID)
		if e == nil || e.client != s.me || s.t.superseded(e) {
			return lock.ErrLost
		}
		e.lease.ExpiresAt, e.lease.OwnerName = r.ExpiresAt, r.OwnerName
		s.changed = true
		return nil
	})
	if err == nil || errors.Is(err, lock.ErrLost) || ctx.Err() != nil {
		return err
	}
	return &lock.Error{Code: lock.CodeRenewFailed, Operation: lock.OpRenew, Resource: r.Resource, Err: err,
		Detail: "the record could not be written; the runtime tries again until the lease expires"}
}

// Remove implements [lock.Records]. There is nothing to do if the record was removed with its lock.
func (c *FileLocks) Remove(ctx context.Context, r lock.Record) error {
	return c.steps.remove(ctx, r.LeaseID)
}

// Leases returns the records of all resources that living clients hold.
func (c *FileLocks) Leases(ctx context.Context) ([]lock.Record, error) {
	t, err := c.steps.look(ctx)
	if err != nil {
		return nil, err
	}
	var leases []lock.Record
	for _, e := range t.queue {
		if e.lease != nil {
			leases = append(leases, e.lease.Record)
		}
	}
	return leases, nil
}

// Read implements [lock.Records]. Records of clients that are gone do not count.
func (c *FileLocks) Read(ctx context.Context, resource string) (r lock.Record, ok bool, err error) {
	t, err := c.steps.look(ctx)
	if err != nil {
		return lock.Record{}, false, err
	}
	l := t.record(resource)
	if l == nil {
		return lock.Record{}, false, nil
	}
	r = l.Record
	r.TTL = l.ttl
	return r, true, nil
}
