package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/server/audit"
	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/policy"
	"github.com/holdfast-dev/holdfast/server/sessions"
	"github.com/holdfast-dev/holdfast/server/users"
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

// may checks that a session has not ended and may perform an operation at a path.
func (a *API) may(s sessions.Session, p locks.Path, what policy.Permission) error {
	if s.SignInEnded(time.Now()) {
		return errUnauthenticated
	}
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
		limits := rules.Limits(s.User, p)
		if r.User = userKey(s.User); limits.Locks > 0 && (r.UserLocks == 0 || limits.Locks < r.UserLocks) {
			r.UserLocks = limits.Locks
		}
		if limit := limits.TTL; limit > 0 && r.TTL > limit {
			return &apiError{http.StatusForbidden, "not_allowed", "Your locks here last " + limit.String() + " at most: ask for a shorter ttl_ms."}
		}
	}
	return nil
}

// afterWait checks again that a session may lock: while its request waited, the rules may have changed and the sign-in may have ended. It
// withdraws the lease otherwise.
func (a *API) afterWait(r *http.Request, s sessions.Session, request locks.Request, lease locks.Lease) error {
	err := a.mayLock(s, &request)
	if s.SignInEnded(time.Now()) {
		err = errUnauthenticated
	}
	if err != nil {
		a.withdraw(r, lease)
	}
	return err
}

// userKey is the name under which the locks of a user are counted. The store keeps only UTF-8, and a proxy may send other names.
func userKey(u users.User) string {
	if utf8.ValidString(u.Name) {
		return u.Name
	}
	return url.PathEscape(u.Name)
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

// writer returns the client that writes to a document, with the number of documents that the policy lets the user make.
func (a *API) writer(s sessions.Session, id, owner string) content.Writer {
	w := content.Writer{Holder: owner, Maker: s.HolderID}
	if s.User.SignedIn() {
		w.Maker = "user:" + url.PathEscape(s.User.Name)
		w.Documents = a.Policy().Limits(s.User, locks.Document(id)).Documents
	}
	return w
}

// mayRenew checks that the holder of a lease may still hold it, if this server has seen the lease.
func (a *API) mayRenew(s sessions.Session, lease string) error {
	for _, p := range a.Locks.PathsInView(lease) {
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

// MayEnter reports whether a session may see a room of people, or enter and change it. Refusals go to the audit log, at most
// refusalsAtOnce of a session in quick succession.
func (a *API) MayEnter(r *http.Request, s sessions.Session, room string, change bool) bool {
	what := policy.Read
	if change {
		what = policy.Write
	}
	path := []string{"rooms", room}
	if a.may(s, path, what) == nil {
		return true
	}
	if _, few := a.refusals.Allow(s.HolderID, time.Now()); few { // a socket may repeat it with every message
		a.noted(r, s, audit.Entry{Event: audit.Refused, Paths: [][]string{path}})
	}
	return false
}
