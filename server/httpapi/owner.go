package httpapi

import (
	"context"
	"slices"

	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

// A browser whose first requests ran in parallel has several ids. The functions of this file choose the id under which
// it holds the lock that a request is about. All other clients have one id, and nothing is looked up.

// ownerAt returns the id under which the owner holds a document.
func (a *API) ownerAt(ctx context.Context, s sessions.Session, document string) (string, error) {
	if len(s.Former) == 0 {
		return s.HolderID, nil
	}
	lease, _, err := a.Locks.At(ctx, locks.Document(document))
	return known(s, lease.Holder.ID), err
}

// ownerOf returns the id under which the owner holds a lease.
func (a *API) ownerOf(ctx context.Context, s sessions.Session, lease string) (string, error) {
	if len(s.Former) == 0 {
		return s.HolderID, nil
	}
	holder, err := a.Locks.HolderOf(ctx, lease)
	return known(s, holder), err
}

// own sets the ids under which the owner acquires. The holder is the id of an earlier request with the ticket, or of the lock
// that the owner holds at the first of the paths. The others are the former ones, because a tab that is gone may have left locks
// under any of them. A request with Replace promises that the tabs of the session exclude each other, so it must send its
// session: a client that gives up the request does not know the session that this response creates.
func (a *API) own(ctx context.Context, s sessions.Session, r *locks.Request) (err error) {
	if s.New && r.Exact {
		return errNoSession
	}
	r.Holder.ID = s.HolderID
	if len(s.Former) == 0 {
		return nil
	}
	if err := r.Check(); err != nil { // before anything is looked up for it
		return err
	}
	r.Former = append(slices.Clone(s.Former), s.HolderID)
	if r.Ticket != "" {
		holder, err := a.Locks.HolderOfTicket(ctx, r.Ticket, r.Former)
		if err != nil || holder != "" {
			r.Holder.ID = holder
			return err
		}
	}
	lease, _, err := a.Locks.At(ctx, r.Paths[0])
	r.Holder.ID = known(s, lease.Holder.ID)
	return err
}

func known(s sessions.Session, holder string) string {
	if s.Owns(holder) {
		return holder
	}
	return s.HolderID
}
