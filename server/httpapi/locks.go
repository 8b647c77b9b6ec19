package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

func (a *API) lockPaths(w http.ResponseWriter, r *http.Request, s sessions.Session) error {
	var body pathsBody
	if err := readBody(w, r, &body, false); err != nil {
		return err
	}
	request, err := body.request(a)
	if err != nil {
		return err
	}
	if !a.LockAll && request.Mode != locks.Shared && slices.ContainsFunc(request.Paths, locks.AllDocuments) {
		return errLockAll
	}
	if request.Holder, err = holder(s, body.HolderName, r.URL.Query()); err != nil {
		return err
	}
	lease, err := a.acquire(w, r, s, request)
	var denied *locks.DeniedError
	switch {
	case errors.Is(err, locks.ErrTimeout) && errors.As(err, &denied):
		writeJSON(w, http.StatusRequestTimeout, refusal("acquire_timeout", "The lock did not become free in time.", denied, s))
		return nil
	case errors.As(err, &denied):
		writeJSON(w, http.StatusConflict, refusal("acquire_denied", "Somebody else holds a lock in the way.", denied, s))
		return nil
	case err != nil:
		return err
	}
	answer := granted(lease, request)
	answer["lease_id"], answer["slot"] = lease.ID, lease.Slot
	writeJSON(w, http.StatusOK, answer)
	return nil
}

func refusal(code, message string, denied *locks.DeniedError, s sessions.Session) map[string]any {
	return map[string]any{
		"success": false, "error": code, "message": message, "holders": holders(denied.Holders, s),
	}
}

func holders(leases []locks.Lease, s sessions.Session) []map[string]any {
	list := make([]map[string]any, len(leases))
	for i, l := range leases {
		list[i] = public(l)
		list[i]["paths"] = l.Paths
		list[i]["mode"] = l.Mode
		list[i]["slot"] = l.Slot
		list[i]["token"] = l.Token
		list[i]["is_mine"] = s.Owns(l.Holder.ID)
	}
	return list
}

func (a *API) renewLease(w http.ResponseWriter, r *http.Request, s sessions.Session) error {
	owner, err := a.ownerOf(r.Context(), s, r.PathValue("leaseId"))
	if err != nil {
		return err
	}
	expires, err := a.Locks.Renew(r.Context(), r.PathValue("leaseId"), owner)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"success": true, "expires_at": at(expires)})
	return nil
}

// whole returns a context for what is done to its end also when the client, who is about to leave, does not wait for it.
func (a *API) whole(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(r.Context()), a.WriteLimit)
}

func (a *API) releaseLease(w http.ResponseWriter, r *http.Request, s sessions.Session) error {
	ctx, cancel := a.whole(r)
	defer cancel()
	owner, err := a.ownerOf(ctx, s, r.PathValue("leaseId"))
	if err != nil {
		return err
	}
	if err := a.Locks.Release(ctx, r.PathValue("leaseId"), owner); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"success": true, "message": "You do not hold this lock now."})
	return nil
}

// giveUp ends an acquisition by its ticket, whether or not it was granted.
func (a *API) giveUp(w http.ResponseWriter, r *http.Request, s sessions.Session) error {
	ctx, cancel := a.whole(r)
	defer cancel()
	for _, owner := range append(s.Former, s.HolderID) {
		if err := a.Locks.GiveUp(ctx, owner, r.URL.Query().Get("ticket")); err != nil {
			return err
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"success": true, "message": "This acquisition has ended."})
	return nil
}

func (a *API) showPath(w http.ResponseWriter, r *http.Request, s sessions.Session) error {
	query := r.URL.Query()
	path, err := queryPath(query.Get("path"))
	if err != nil {
		return err
	}
	limit, err := pageSize(query.Get("limit"))
	if err != nil {
		return err
	}
	page, err := a.Locks.List(r.Context(), path, query.Get("after"), int(limit))
	if err != nil {
		return err
	}
	waiters := make([]map[string]any, len(page.Waiters))
	for i, v := range page.Waiters {
		waiters[i] = map[string]any{
			"holder_id": v.Holder.ID, "holder_name": v.Holder.Name, "paths": v.Paths, "mode": v.Mode,
			"since": at(v.Since), "is_mine": v.Holder.ID == s.HolderID,
		}
	}
	body := map[string]any{"holders": holders(page.Holders, s), "waiters": waiters}
	if page.Next != "" {
		body["next"] = page.Next
	}
	writeJSON(w, http.StatusOK, body)
	return nil
}

// queryPath takes a path apart whose components are joined by slashes; one inside a component is escaped as %2F.
func queryPath(text string) (locks.Path, error) {
	if text == "" {
		return nil, invalid("The query needs a path, as path=a/b.")
	}
	var path locks.Path
	for _, part := range strings.Split(text, "/") {
		component, err := url.PathUnescape(part)
		if err != nil {
			return nil, invalid("The path is not well encoded.")
		}
		path = append(path, component)
	}
	return path, nil
}
