package locks

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// Renew extends a lease by its TTL from now and returns when it ends. It fails with [ErrNotFound] when the lease has
// ended, swept or not, and with [ErrNotHolder] when it is somebody else's.
func (t *Table) Renew(ctx context.Context, id string, holder string) (time.Time, error) {
	s, err := t.byID(ctx, id, holder)
	if err != nil {
		return time.Time{}, err
	}
	lease, err := t.extend(ctx, s)
	return lease.ExpiresAt, err
}

// RenewAt is Renew for the exclusive lease on a path. A token other than 0 must be its own, or it is [ErrStaleToken].
func (t *Table) RenewAt(ctx context.Context, p Path, holder string, token int64) (Lease, error) {
	// What this server saw last is tried first: the transaction says whether it still holds.
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

func (s stand) bears(token int64) bool { return token == 0 || token == s.token }

// extend sets the heartbeat if the lease is still there.
func (t *Table) extend(ctx context.Context, s stand) (Lease, error) {
	if ended, err := t.settle(ctx, s); ended || err != nil {
		return Lease{}, cmp.Or(err, ErrNotFound)
	}
	expires := time.Now().Add(s.ttl())
	t.mirror.own.make(s.claim, expires)
	held, err := t.beat(ctx, s, expires)
	if err != nil || !held {
		t.mirror.own.drop(s.beatKey())
		return Lease{}, cmp.Or(err, ErrNotFound)
	}
	t.config.Metrics.Renewals.Inc()
	return s.lease(s.token, expires), nil
}

// seenAt is the holder's exclusive lease on a path as this server saw it last.
func (t *Table) seenAt(p Path, holder string) (stand, bool) {
	return t.mirror.at(node(claimPrefix, p)+exclusiveMark, holder)
}

// seenByID is the holder's lease with an id, as far as this server has seen.
func (t *Table) seenByID(id, holder string) (stand, bool) {
	name, home, ok := parseID(id)
	if !ok {
		return stand{}, false
	}
	s, ok := t.mirror.at(home, holder)
	return s, ok && s.Lease == name
}

// SeenPaths returns the paths of a lease, as far as this server has seen it.
func (t *Table) SeenPaths(id string) []Path {
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

// Seen reports whether somebody keeps others from a path, as far as this server has seen. Only locks on paths that count are looked at.
func (t *Table) Seen(p Path, counts func([]Path) bool) bool {
	t.mirror.mu.Lock()
	list, _ := t.mirror.inTheWay(claim{Paths: []Path{p}, Mode: Exclusive})
	t.mirror.mu.Unlock()
	return slices.ContainsFunc(list, func(s stand) bool { return counts(s.Paths) })
}

// seenGranted is the lease that a ticket's acquisition has got already, as far as this server has seen.
func (t *Table) seenGranted(own *ticket) (stand, bool) {
	t.mirror.mu.Lock()
	defer t.mirror.mu.Unlock()
	h := t.mirror.got(own)
	if h == nil {
		return stand{}, false
	}
	return h.stand(), true
}

// holderAt reads the exclusive lease on a path; it must be the holder's and, unless that is 0, of the token.
func (t *Table) holderAt(ctx context.Context, p Path, holder string, token int64) (stand, error) {
	s, err := t.readOwn(ctx, node(claimPrefix, p)+exclusiveMark, holder)
	if err == nil && !s.bears(token) {
		err = ErrStaleToken
	}
	return s, err
}

func (t *Table) byID(ctx context.Context, id, holder string) (stand, error) {
	name, home, ok := parseID(id)
	if !ok {
		return stand{}, ErrNotFound
	}
	s, err := t.readOwn(ctx, home, holder)
	if err == nil && s.Lease != name || errors.Is(err, ErrNotHolder) && s.Lease != name {
		return stand{}, ErrNotFound
	}
	return s, err
}

// readOwn reads the claim at a key. With ErrNotHolder it returns the claim as well.
func (t *Table) readOwn(ctx context.Context, key, holder string) (stand, error) {
	e, _, err := t.store.Get(ctx, key)
	if err != nil {
		return stand{}, err
	}
	c, ok := decodeClaim(e)
	if !e.Found() || !ok {
		return stand{}, ErrNotFound
	}
	s := stand{c, key, e.Created}
	if ended, err := t.settle(ctx, s); ended || err != nil {
		return stand{}, cmp.Or(err, ErrNotFound)
	}
	if c.Holder != holder {
		return s, ErrNotHolder
	}
	return s, nil
}
