package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast-dev/holdfast/server/events"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/policy"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

// sizeOfOne is the size of a lock, in bytes, for which its request counts as a further one. Otherwise a few hundred locks on long paths
// would fill the store.
const sizeOfOne = 2 << 10

// slotsOfOne is the number of slots, at all its paths together, for which a request counts as a further one: the store may have to read all of
// them.
const slotsOfOne = 100

func (a *API) lockPaths(w http.ResponseWriter, r *http.Request, s sessions.Session) error {
	var body pathsBody
	if err := a.readBody(w, r, &body, false); err != nil {
		return err
	}
	request, err := body.request(a)
	if err != nil {
		return err
	}
	if err := request.Check(); err != nil {
		return err
	}
	may := a.mayLock
	if body.TTL == nil {
		may = a.mayLockWithin
	}
	if err := may(s, &request); err != nil {
		return err
	}
	if err := a.countMore(r, s, request.Size()/sizeOfOne+request.Slots*len(request.Paths)/slotsOfOne); err != nil {
		return err
	}
	if request.Holder, err = holder(s, body.HolderName, r.URL.Query()); err != nil {
		return err
	}
	lease, err := a.acquire(r, s, request)
	var denied *locks.DeniedError
	switch {
	case errors.Is(err, locks.ErrTimeout) && errors.As(err, &denied):
		writeJSON(w, http.StatusRequestTimeout, a.refusal("acquire_timeout", "The lock did not become free in time.", denied, s))
		return nil
	case errors.As(err, &denied):
		writeJSON(w, http.StatusConflict, a.refusal("acquire_denied", "Somebody else holds a lock in the way.", denied, s))
		return nil
	case err != nil:
		return err
	}
	writeJSON(w, http.StatusOK, leaseGrant{granted(lease, request), lease.ID, lease.Slot})
	return nil
}

func (a *API) refusal(code, message string, denied *locks.DeniedError, s sessions.Session) deniedReply {
	return deniedReply{failure{false, code, message}, a.holders(short(a.visible(denied, s)), s)}
}

// manyBytes is the size of the paths of leases, in bytes, above which a reply is large. It stays in memory while its client reads it.
const manyBytes = 16 << 10

func bytesOf(paths []locks.Path) (n int) {
	for _, p := range paths {
		for _, component := range p {
			n += len(component)
		}
	}
	return n
}

// short returns the first leases of a list, with which a reply is not large. It keeps one lease at least.
func short(list []locks.Lease) []locks.Lease {
	size := 0
	for i, l := range list {
		if size += bytesOf(l.Paths); i > 0 && size > manyBytes {
			return list[:i]
		}
	}
	return list
}

// visible returns the holders of which the session may read a path, and its own leases. A lease on a place above the requested one
// may be hidden.
func (a *API) visible(denied *locks.DeniedError, s sessions.Session) (visible []locks.Lease) {
	for _, l := range denied.Holders {
		if s.Owns(l.Holder.ID) || len(a.readable(s, l.Paths)) > 0 {
			visible = append(visible, l)
		}
	}
	return visible
}

// holders describes leases, with the paths that the session may read.
func (a *API) holders(leases []locks.Lease, s sessions.Session) []leaseReply {
	list := make([]leaseReply, len(leases))
	for i, l := range leases {
		list[i] = leaseReply{publicLease: public(l), Paths: a.readable(s, l.Paths), Mode: l.Mode, Slot: l.Slot, Token: l.Token, IsMine: s.Owns(l.Holder.ID)}
		if a.mayBreak(s, l) {
			list[i].LeaseID = l.ID
		}
	}
	return list
}

func (a *API) renewLease(w http.ResponseWriter, r *http.Request, s sessions.Session) error {
	if err := a.mayRenew(s, r.PathValue("leaseId")); err != nil {
		return err
	}
	owner, err := a.ownerOf(r.Context(), s, r.PathValue("leaseId"))
	if err != nil {
		return err
	}
	expires, err := a.Locks.Renew(r.Context(), r.PathValue("leaseId"), owner)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, renewal{true, events.Time(expires)})
	return nil
}

// detached returns a context for work that must finish even if the client leaves early.
func (a *API) detached(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(r.Context()), a.WriteLimit)
}

func (a *API) releaseLease(w http.ResponseWriter, r *http.Request, s sessions.Session) error {
	ctx, cancel := a.detached(r)
	defer cancel()
	owner, err := a.ownerOf(ctx, s, r.PathValue("leaseId"))
	if err != nil {
		return err
	}
	if err := a.Locks.Release(ctx, r.PathValue("leaseId"), owner); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, done{true, "You do not hold this lock now."})
	return nil
}

// giveUp ends an acquisition by its ticket, whether or not it was granted. An id that may not have the ticket remembered does not keep the lease
// of another one.
func (a *API) giveUp(w http.ResponseWriter, r *http.Request, s sessions.Session) error {
	if err := a.countMore(r, s, len(s.Former)); err != nil {
		return err
	}
	ctx, cancel := a.detached(r)
	defer cancel()
	var refusal error
	for _, owner := range append(s.Former, s.HolderID) {
		err := a.Locks.GiveUp(ctx, owner, r.URL.Query().Get("ticket"))
		if err != nil && !errors.Is(err, locks.ErrTooManyTickets) && !errors.Is(err, kv.ErrReserved) {
			return err
		}
		refusal = cmp.Or(refusal, err)
	}
	if refusal != nil {
		return refusal
	}
	writeJSON(w, http.StatusOK, done{true, "This acquisition has ended."})
	return nil
}

func (a *API) showPath(w http.ResponseWriter, r *http.Request, s sessions.Session) error {
	query := r.URL.Query()
	path, err := queryPath(query.Get("path"))
	if err != nil {
		return err
	}
	limit, err := pageSize(query.Get("limit"))
	if err == nil {
		err = a.countMore(r, s, int(limit-1)/defaultPage)
	}
	if err != nil {
		return err
	}
	if err := a.may(s, path, policy.Read); err != nil {
		return err
	}
	page, err := a.listLocks(r.Context(), s, path, query.Get("after"), int(limit))
	if err != nil {
		return err
	}
	if isLarge(page) {
		end, err := a.TakeMemory(r)
		if err != nil {
			return err
		}
		defer end()
	}
	waiters := make([]waiterReply, len(page.Waiters))
	for i, v := range page.Waiters {
		waiters[i] = waiterReply{v.Holder.ID, v.Holder.Name, a.readable(s, v.Paths), v.Mode, events.Time(v.Since), s.Owns(v.Holder.ID)}
	}
	writeJSON(w, http.StatusOK, listing{a.holders(page.Holders, s), waiters, page.Next})
	return nil
}

// isLarge reports whether a reply with a page of locks is large.
func isLarge(page locks.Listing) bool {
	size := 0
	for _, l := range page.Holders {
		size += bytesOf(l.Paths)
	}
	for _, w := range page.Waiters {
		size += bytesOf(w.Paths)
	}
	return size > manyBytes
}

// listLocks lists a page of the locks and requests of which the session may read a path.
func (a *API) listLocks(ctx context.Context, s sessions.Session, path locks.Path, after string, limit int) (locks.Listing, error) {
	return a.Locks.ListVisible(ctx, path, after, limit, func(paths []locks.Path) bool { return len(a.readable(s, paths)) > 0 })
}

// queryPath splits a path at its slashes; a slash inside a component is escaped as %2F.
func queryPath(text string) (locks.Path, error) {
	if text == "" {
		return nil, invalid("The query needs a path, such as path=a/b.")
	}
	var path locks.Path
	for _, part := range strings.Split(text, "/") {
		component, err := url.PathUnescape(part)
		if err != nil {
			return nil, invalid("The path is not encoded correctly.")
		}
		path = append(path, component)
	}
	return path, nil
}
