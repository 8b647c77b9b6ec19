package locks

import (
	"context"
	"slices"
)

// again returns the requester's own lease if it matches the request: by its ticket, or without one if the request
// allows it.
func again(r Request, own *ticket, claims []storedLease) (storedLease, bool) {
	if i := slices.IndexFunc(claims, func(s storedLease) bool { return own.got(s.claim) }); i >= 0 {
		return claims[i], true
	}
	if !r.Again || r.Fresh || r.Exact || len(claims) != 1 {
		return storedLease{}, false
	}
	mine := claims[0]
	return mine, mine.Holder == r.Holder.ID && mine.Mode == r.Mode && mine.Slots <= 1 && samePaths(mine.Paths, r.Paths)
}

// repeat extends a lease for its holder, which asks for it again.
func (t *Table) repeat(ctx context.Context, own *ticket, mine storedLease) (Lease, error) {
	lease, err := t.extend(ctx, mine)
	if own.got(mine.claim) {
		lease.LockedAt = lease.ExpiresAt.Add(-mine.ttl()) // as in an immediate answer: LockedAt and ExpiresAt show the TTL
	}
	return lease, err
}

// concerns reports whether makeWay would repeat, end or report one of the conflicting leases. A request waits for none of them, except for
// those that it has already asked the store to end.
func (r Request) concerns(own *ticket, claims []storedLease) bool {
	claims = slices.DeleteFunc(claims, func(s storedLease) bool {
		return slices.ContainsFunc(own.passedOn, func(ended storedLease) bool { return ended.token == s.token })
	})
	_, repeats := again(r, own, claims)
	return repeats || r.left(claims) != nil || slices.ContainsFunc(claims, r.replaces)
}

// passedOn returns the leases that are handed over to a request. The request joins the queue before they end.
func (r Request) passedOn(claims []storedLease) (replaced []storedLease) {
	for _, s := range claims {
		if r.PassOn && r.Wait > 0 && r.replaces(s) {
			replaced = append(replaced, s)
		}
	}
	return replaced
}

// passOn prepares a request to take over its holder's leases before all waiters. It returns a function that ends them, for the time when the
// request has joined the queue.
func (t *Table) passOn(ctx context.Context, r Request, own *ticket, replaced []storedLease) (queued func()) {
	own.goBefore(passedOn)
	own.passedOn = replaced
	return func() {
		_, _ = t.replace(ctx, r, replaced) // after a failure, the client asks again
		if r.Queued != nil {
			r.Queued()
		}
	}
}

// left returns an error that names the conflicting leases that a gone tab of the holder's browser left.
func (r Request) left(claims []storedLease) error {
	var e LeftError
	for _, s := range claims {
		if r.Exact && r.supersedes(s) && r.Browser == s.Browser {
			e.Tokens = append(e.Tokens, s.token)
		}
	}
	if len(e.Tokens) == 0 {
		return nil
	}
	return &e
}

// replace ends the leases that a request replaces, and reports whether there were any.
func (t *Table) replace(ctx context.Context, r Request, claims []storedLease) (bool, error) {
	replaced := false
	for _, s := range claims {
		if !r.replaces(s) {
			continue
		}
		if _, err := t.endAcquisition(ctx, s); err != nil {
			return false, err
		}
		replaced = true
	}
	return replaced, nil
}
