package locks

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// Renew extends a lease by its TTL from now and returns its new expiry. It fails with [ErrNotFound] if the lease has
// ended, swept or not, and with [ErrNotHolder] if another owner holds it.
func (t *Table) Renew(ctx context.Context, id string, holder string) (time.Time, error) {
	s, err := t.byID(ctx, id, holder)
	if err != nil {
		return time.Time{}, err
	}
	lease, err := t.extend(ctx, s)
	return lease.ExpiresAt, err
}

// RenewAt is Renew for the exclusive lease on a path. If token is not 0, the lease must have it, or RenewAt fails
// with [ErrStaleToken].
func (t *Table) RenewAt(ctx context.Context, p Path, holder string, token int64) (Lease, error) {
	// RenewAt first tries the lease in this server's view. The transaction confirms that it still exists.
	if s, ok := t.seenAt(p, holder); ok && s.bears(token) {
		lease, err := t.extend(ctx, s)
		if !errors.Is(err, ErrNotFound) {
			return lease, err
		}
	}
	s, err := t.holderAt(ctx, p, holder, token)
	if err != nil {
		return Lease{}, err
	}
	return t.extend(ctx, s)
}

func (s storedLease) bears(token int64) bool { return token == 0 || token == s.token }

// extend sets the heartbeat if the lease still exists.
func (t *Table) extend(ctx context.Context, s storedLease) (Lease, error) {
	if ended, err := t.endIfDue(ctx, s); ended || err != nil {
		return Lease{}, cmp.Or(err, ErrNotFound)
	}
	expires := time.Now().Add(s.ttl())
	t.mirror.own.make(s.claim, expires)
	held, err := t.beat(ctx, s, t.mirror.beatOf(s), expires)
	if err != nil || !held {
		t.mirror.own.drop(s.claim)
		return Lease{}, cmp.Or(err, ErrNotFound)
	}
	t.config.Metrics.Renewals.Inc()
	return s.lease(s.token, expires), nil
}

// seenAt returns the holder's exclusive lease on a path, as far as this server knows.
func (t *Table) seenAt(p Path, holder string) (storedLease, bool) {
	return t.mirror.at(node(claimPrefix, p)+exclusiveMark, holder)
}

// seenByID returns the holder's lease with this id, as far as this server knows.
func (t *Table) seenByID(id, holder string) (storedLease, bool) {
	name, home, ok := parseID(id)
	if !ok {
		return storedLease{}, false
	}
	s, ok := t.mirror.at(home, holder)
	return s, ok && s.Lease == name
}

// PathsInView returns the paths of a lease, as far as this server knows.
func (t *Table) PathsInView(id string) []Path {
	name, home, _ := parseID(id)
	t.mirror.mu.Lock()
	defer t.mirror.mu.Unlock()
	if h := t.mirror.held[name]; h != nil {
		return h.Paths
	}
	if s := t.mirror.granted[home]; s.Lease == name {
		return s.Paths
	}
	return nil
}

// ConflictInView reports whether a lease in this server's view conflicts with an exclusive lock on the path. It considers only
// leases on paths for which counts returns true.
func (t *Table) ConflictInView(p Path, counts func([]Path) bool) bool {
	t.mirror.mu.Lock()
	list, _ := t.mirror.inTheWay(claim{Paths: []Path{p}, Mode: Exclusive})
	t.mirror.mu.Unlock()
	return slices.ContainsFunc(list, func(s storedLease) bool { return counts(s.Paths) })
}

// seenGranted returns the lease that a ticket's acquisition has already received, from this server's view.
func (t *Table) seenGranted(own *ticket) (storedLease, bool) {
	t.mirror.mu.Lock()
	defer t.mirror.mu.Unlock()
	h := t.mirror.got(own)
	if h == nil {
		return storedLease{}, false
	}
	return h.storedLease(), true
}

// holderAt reads the exclusive lease on a path. It must belong to the holder and have the token, unless that is 0.
func (t *Table) holderAt(ctx context.Context, p Path, holder string, token int64) (storedLease, error) {
	s, err := t.readOwn(ctx, node(claimPrefix, p)+exclusiveMark, holder)
	if err == nil && !s.bears(token) {
		err = ErrStaleToken
	}
	return s, err
}

func (t *Table) byID(ctx context.Context, id, holder string) (storedLease, error) {
	name, home, ok := parseID(id)
	if !ok {
		return storedLease{}, ErrNotFound
	}
	s, err := t.readOwn(ctx, home, holder)
	if err == nil && s.Lease != name || errors.Is(err, ErrNotHolder) && s.Lease != name {
		return storedLease{}, ErrNotFound
	}
	return s, err
}

// readOwn reads the claim at a key. With ErrNotHolder it also returns the claim.
func (t *Table) readOwn(ctx context.Context, key, holder string) (storedLease, error) {
	e, _, err := t.store.Get(ctx, key)
	if err != nil {
		return storedLease{}, err
	}
	c, ok := decodeClaim(e)
	if !e.Found() || !ok {
		return storedLease{}, ErrNotFound
	}
	s := storedLease{c, key, e.Created}
	if ended, err := t.endIfDue(ctx, s); ended || err != nil {
		return storedLease{}, cmp.Or(err, ErrNotFound)
	}
	if c.Holder != holder {
		return s, ErrNotHolder
	}
	return s, nil
}
