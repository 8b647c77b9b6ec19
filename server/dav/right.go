package dav

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/httpapi"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/locks"
)

const (
	// noteOwn begins the note of a lock that a program has asked for; the owner that it states follows.
	noteOwn = "dav "
	// noteChange is the note of a lock that a change takes for itself.
	noteChange = "dav-change"
	// changeWait is how long a change waits for another change without a lock.
	changeWait = 15 * time.Second
)

// right is the lock under which a place changes: one of the program, or one for this change alone.
type right struct {
	*Handler
	call  *call
	place place
	scope scope
	lease locks.Lease
	own   bool // the lock is for this change alone
	since time.Time
	ttl   time.Duration // of a lock for this change alone
}

// scope says what a change is about.
type scope int

const (
	theContent    scope = iota // of a file
	theEntry                   // the place with everything below it, as a member of its parent
	theMembers                 // of a collection that exists, with everything below them
	theProperties              // of a collection, without its members
)

// mayChange returns the right to change a place. The caller ends it.
func (h *Handler) mayChange(c *call, p place, what scope) (*right, error) {
	g := &right{Handler: h, call: c, place: p, scope: what, since: time.Now()}
	ctx := c.r.Context()
	around, err := g.around(ctx)
	if err != nil || g.lease.Token != 0 {
		return g, err
	}
	if len(around.others) > 0 && len(around.inside) > 0 {
		return nil, h.locked(c.session, p, around.all) // otherwise the acquisition would end the program's own locks in vain
	}
	request := locks.Request{
		Paths: []locks.Path{g.path()}, TTL: h.LockTTL, Note: noteChange, Exact: len(around.inside) > 0, Replace: around.inside,
	}
	if request.Holder, err = httpapi.Holder(c.session, ""); err != nil {
		return nil, err
	}
	if err := h.API.MayLock(c.session, &request); err != nil {
		return nil, err
	}
	g.lease, err = h.acquire(ctx, request)
	if err != nil {
		return nil, h.denied(c.session, p, err)
	}
	g.own, g.ttl = true, request.TTL
	return g, nil
}

// inTheWay returns the error of a change that a lock of another program forbids now.
func (h *Handler) inTheWay(c *call, p place, what scope) error {
	g := &right{Handler: h, call: c, place: p, scope: what}
	around, err := g.around(c.r.Context())
	if err != nil || g.lease.Token != 0 {
		return err
	}
	if slices.ContainsFunc(around.others, lasting) {
		return h.locked(c.session, p, around.all)
	}
	return nil
}

// lasting reports whether a lock is more than that of one change.
func lasting(l locks.Lease) bool { return l.Note != noteChange }

// path is what a change locks.
func (g *right) path() locks.Path {
	if g.scope == theProperties {
		return g.place.members()
	}
	return g.place.path()
}

// around are the locks on a place, on the collections around it and on what is in it.
type around struct {
	all    []locks.Lease
	inside []int64 // the program's own ones below the place, or on its members
	others []locks.Lease
}

// around finds the locks around a change. If the program holds one that covers the whole change, that lock becomes the lease of g. around
// fails if a lock of another program forbids the change even so.
func (g *right) around(ctx context.Context) (found around, err error) {
	if _, err := g.checkMembers(ctx); err != nil {
		return found, err
	}
	if found.all, err = g.leases(ctx, g.path()); err != nil {
		return found, err
	}
	for _, l := range found.all {
		mine := owned(g.call.session, g.call.submitted, l)
		switch {
		case mine && (above(l, g.place) || g.scope == theProperties && covers(l, g.place)):
			g.lease = l
		case mine:
			found.inside = append(found.inside, l.Token)
		default:
			found.others = append(found.others, l)
		}
	}
	if g.lease.Token != 0 {
		err = g.othersAbsent(found.all)
	}
	return found, err
}

// acquire acquires a lock. If only other changes hold it, it waits for them.
func (h *Handler) acquire(ctx context.Context, r locks.Request) (locks.Lease, error) {
	lease, err := h.Locks.Acquire(ctx, r)
	var denied *locks.DeniedError
	if !errors.As(err, &denied) || slices.ContainsFunc(denied.Holders, lasting) {
		return lease, err
	}
	r.Wait = changeWait
	return h.Locks.Acquire(ctx, r)
}

// othersAbsent checks that the program has submitted the tokens of all locks below the place. Its own lock above the place may be
// shared, so other programs may hold locks below.
func (g *right) othersAbsent(leases []locks.Lease) error {
	for _, l := range leases {
		if !covers(l, g.place) && !owned(g.call.session, g.call.submitted, l) {
			return g.locked(g.call.session, g.place, leases)
		}
	}
	return nil
}

// checkMembers checks the lock on the members of the parent, and returns the condition that this stays so. A change that began before
// these were locked goes on: that LOCK waits for it, see [Handler.awaitMembers].
func (g *right) checkMembers(ctx context.Context) ([]kv.Cond, error) {
	if g.scope != theEntry || g.place.root() {
		return nil, nil
	}
	parent := g.place.parent()
	leases, err := g.leases(ctx, parent.members())
	if err != nil {
		return nil, err
	}
	conditions := []kv.Cond{locks.Free(parent.members())}
	for _, l := range leases {
		if !slices.ContainsFunc(l.Paths, func(q locks.Path) bool { return slices.Equal(q, parent.members()) }) {
			continue
		}
		if owned(g.call.session, g.call.submitted, l) || !lasting(l) || g.own && g.lease.Token < l.Token {
			return []kv.Cond{l.NotEnded()}, nil // PROPPATCH takes a lock on the members for itself, and changes none of them
		}
		conditions = nil
	}
	if conditions == nil {
		return nil, g.locked(g.call.session, parent, leases)
	}
	return conditions, nil
}

// fence returns the conditions under which the change commits. It extends a lock of its own that has become old.
func (g *right) fence(ctx context.Context) ([]kv.Cond, error) {
	if g.own && time.Since(g.since) > g.ttl/3 {
		if _, err := g.Locks.Renew(ctx, g.lease.ID, g.lease.Holder.ID); errors.Is(err, locks.ErrNotFound) {
			return nil, errIfFailed // 404 would say that the file does not exist
		} else if err != nil {
			return nil, err
		}
		g.since = time.Now()
	}
	stands, err := g.Locks.FenceOf(ctx, g.lease)
	if errors.Is(err, locks.ErrStaleToken) {
		return nil, errIfFailed
	}
	if err != nil {
		return nil, err
	}
	members, err := g.checkMembers(ctx)
	return append(members, stands), err
}

// mayBegin checks the right once more before the first of several changes. A lock on the members that was acquired before this right
// stops the change; a later one does not. A nil right changes nothing, so it passes.
func (g *right) mayBegin(ctx context.Context) error {
	if g == nil {
		return nil
	}
	_, err := g.fence(ctx)
	return err
}

// changing is mayChange, and reads the node at the place now that no other program can change it. The request may have waited for
// another change, so the caller's check is repeated.
func (h *Handler) changing(c *call, p place, what scope, check func(node) error) (*right, node, error) {
	g, err := h.mayChange(c, p, what)
	if err != nil {
		return nil, node{}, err
	}
	n, err := h.look(c.r.Context(), c.session, p)
	if err == nil {
		err = check(n)
	}
	if err != nil {
		g.end()
		return nil, n, err
	}
	return g, n, nil
}

// content returns the right for a change of a content.
func (g *right) content(also ...kv.Op) content.Right {
	return content.Right{By: g.writer(g.place), Token: g.lease.Token, Fence: g.fence, Also: also, OneChange: g.own}
}

// commit runs operations under the right and a further condition. It reports whether that condition held. If the right has
// ended just before, that is an error. It tries again if only a condition of the right did not hold, and the right stands.
func (g *right) commit(ctx context.Context, condition kv.Cond, ops ...kv.Op) (bool, error) {
	for {
		fence, err := g.fence(ctx)
		if err != nil {
			return false, err
		}
		result, err := g.Store.Commit(ctx, kv.Txn{If: append(fence, condition), Then: ops})
		if err != nil || result.Held {
			return result.Held, err
		}
		if result, err = g.Store.Commit(ctx, kv.Txn{If: []kv.Cond{condition}}); err != nil {
			return false, err
		}
		if !result.Held {
			_, err = g.fence(ctx)
			return false, err
		}
	}
}

// end releases a lock that was for this change alone.
func (g *right) end() {
	if g == nil || !g.own {
		return
	}
	g.API.Drop(g.call.r, g.lease)
}

// endLocks releases the program's locks at a place that is gone, and below it.
func (g *right) endLocks() {
	ctx, cancel := g.API.Detached(g.call.r)
	defer cancel()
	leases, _ := g.leases(ctx, g.place.path())
	for _, l := range leases {
		within := slices.ContainsFunc(l.Paths, func(q locks.Path) bool { p, _, ok := placeOf(q); return ok && p.within(g.place) })
		if within && owned(g.call.session, g.call.submitted, l) {
			g.Locks.Drop(ctx, l)
		}
	}
}

// above reports whether a lease is on the place itself or on a collection around it, with everything below.
func above(l locks.Lease, p place) bool {
	return slices.ContainsFunc(l.Paths, func(q locks.Path) bool { at, members, ok := placeOf(q); return ok && !members && p.within(at) })
}
