package httpapi

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/policy"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

// Every permission is checked before the store is asked, so a refusal does not reveal whether something exists at the
// path.

var (
	errUnauthenticated = &apiError{http.StatusUnauthorized, "unauthenticated", "Sign in: nobody may do this here without a user."}
	errNotAllowed      = &apiError{http.StatusForbidden, "not_allowed", "You may not do this here."}
)

// refused is the error for an operation that a session may not perform.
func (a *API) refused(s sessions.Session) error {
	if a.SignIn && !s.User.SignedIn() {
		return errUnauthenticated
	}
	return errNotAllowed
}

// may checks that a session may perform an operation at a path.
func (a *API) may(s sessions.Session, p locks.Path, what policy.Permission) error {
	if !a.Policy().May(s.User, p, what) {
		return a.refused(s)
	}
	return nil
}

// mayLock checks that a session may lock the paths with everything below them, for the time that it asks for.
func (a *API) mayLock(s sessions.Session, r *locks.Request) error {
	rules := a.Policy()
	for _, p := range r.Paths {
		if len(p) == 0 {
			continue // this is no path, so the table refuses it
		}
		if !rules.MayBelow(s.User, p, policy.Lock) {
			return a.refused(s)
		}
		if locks.AllDocuments(p) && r.Mode != locks.Shared && !a.LockAll && !rules.May(s.User, p, policy.Admin) {
			return errLockAll
		}
		if limit := rules.Limits(s.User, p).TTL; limit > 0 && r.TTL > limit {
			return &apiError{http.StatusForbidden, "not_allowed", "Your locks here last " + limit.String() + " at most: ask for a shorter ttl_ms."}
		}
	}
	return nil
}

// mayLockWithin is mayLock for a request that names no TTL. The lock lasts as long as the policy allows.
func (a *API) mayLockWithin(s sessions.Session, r *locks.Request) error {
	rules := a.Policy()
	for _, p := range r.Paths {
		if limit := rules.Limits(s.User, p).TTL; limit > 0 {
			r.TTL = min(r.TTL, limit)
		}
	}
	return a.mayLock(s, r)
}

// mayRenew checks that the holder of a lease may still hold it, if this server has seen the lease.
func (a *API) mayRenew(s sessions.Session, lease string) error {
	for _, p := range a.Locks.SeenPaths(lease) {
		if !a.Policy().MayBelow(s.User, p, policy.Lock) {
			return a.refused(s)
		}
	}
	return nil
}

// readable returns the paths that a session may read.
func (a *API) readable(s sessions.Session, paths []locks.Path) []locks.Path {
	rules := a.Policy()
	if !slices.ContainsFunc(paths, func(p locks.Path) bool { return !rules.May(s.User, p, policy.Read) }) {
		return paths
	}
	var list []locks.Path
	for _, p := range paths {
		if rules.May(s.User, p, policy.Read) {
			list = append(list, p)
		}
	}
	return list
}

// readableLock returns the first lock on a path, above it or below it, that the session may read.
func (a *API) readableLock(ctx context.Context, s sessions.Session, p locks.Path) (locks.Lease, error) {
	page, err := a.listLocks(ctx, s, p, "", 1)
	if err != nil || len(page.Holders) == 0 {
		return locks.Lease{}, err
	}
	return page.Holders[0], nil
}

// MayEnter reports whether a session may see a room of people, or enter and change it.
func (a *API) MayEnter(s sessions.Session, room string, change bool) bool {
	what := policy.Read
	if change {
		what = policy.Write
	}
	return (s.UserEnds.IsZero() || time.Now().Before(s.UserEnds)) && a.Policy().May(s.User, []string{"rooms", room}, what)
}

// stillReads checks that the user of a socket is signed in and may read a path.
func (a *API) stillReads(s sessions.Session, p locks.Path) error {
	if !s.UserEnds.IsZero() && !time.Now().Before(s.UserEnds) {
		return errUnauthenticated
	}
	return a.may(s, p, policy.Read)
}
