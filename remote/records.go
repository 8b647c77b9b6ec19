package remote

import (
	"context"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// Claim implements [lock.Records]. The token is the server's. It renews the lock as well: a lease
// counts its time from the beginning of the claim, which is then before the server does.
func (d *Document) Claim(ctx context.Context, r lock.Record, stolen bool) (int64, error) {
	d.mu.Lock()
	token, kept := d.present.token, d.present.ttl
	d.mu.Unlock()
	if ttl := r.ExpiresAt.Sub(r.AcquiredAt); kept > 0 && ttl > kept {
		return 0, &lock.Error{Code: lock.CodeInvalidArgument, Operation: lock.OpAcquire, Resource: d.resource(),
			Detail: "ttlMs (" + millis(ttl) + ") must not be longer than the server keeps a lock (" + millis(kept) + ")"}
	}
	reply, err := d.send(ctx, Request{Method: "PUT", Path: d.path + "/lock", Token: token})
	switch {
	case passing(reply, err):
		return 0, d.unreachable(reply, err)
	case reply.Status != statusOK:
		return 0, &lock.Error{Code: lock.CodeDenied, Operation: lock.OpAcquire, Resource: d.resource(),
			Detail: "another owner took it over at the same moment", Err: refused(lock.OpAcquire, reply)}
	}
	if d.c.Local.Records == nil {
		return token, nil
	}
	local, err := d.c.Local.Records.Claim(ctx, d.local(r, 0), stolen)
	d.mu.Lock()
	d.present.local = local
	d.mu.Unlock()
	return token, err
}

// Renew implements [lock.Records].
func (d *Document) Renew(ctx context.Context, r lock.Record) error {
	reply, err := d.send(ctx, Request{Method: "PUT", Path: d.path + "/lock", Token: r.Token})
	switch {
	case passing(reply, err):
		return unanswered(reply, err)
	case reply.Status == statusOK:
		return d.renewHere(ctx, r)
	case reply.Status == statusNotFound, reply.Status == statusForbidden, reply.Status == statusConflict:
		return &lock.Error{Code: lock.CodeLost, Operation: lock.OpRenew, Resource: d.resource(),
			Detail: "the server gave the lock to another owner or let it expire", Err: refused(lock.OpRenew, reply)}
	}
	return refused(lock.OpRenew, reply)
}

func (d *Document) renewHere(ctx context.Context, r lock.Record) error {
	if d.c.Local.Records == nil {
		return nil
	}
	d.mu.Lock()
	local := d.present.local
	d.mu.Unlock()
	return d.c.Local.Records.Renew(ctx, d.local(r, local))
}

// Read implements [lock.Records]: what is known on this machine, or else on the server.
func (d *Document) Read(ctx context.Context, _ string) (lock.Record, bool, error) {
	reply, err := d.send(ctx, Request{Method: "GET", Path: d.path + "/lock"})
	switch {
	case passing(reply, err):
		return lock.Record{}, false, unanswered(reply, err)
	case reply.Status != statusOK:
		return lock.Record{}, false, refused(lock.OpAcquire, reply)
	case reply.Token == 0:
		return lock.Record{}, false, nil
	}
	return lock.Record{Resource: d.resource(), OwnerName: reply.HolderName, Token: reply.Token,
		AcquiredAt: reply.LockedAt, ExpiresAt: reply.ExpiresAt}, true, nil
}

// Remove implements [lock.Records]. On the server, the lock is its own record.
func (d *Document) Remove(ctx context.Context, r lock.Record) error {
	if d.c.Local.Records == nil {
		return nil
	}
	return d.c.Local.Records.Remove(ctx, d.local(r, 0))
}

// local returns the record under its name on this machine.
func (d *Document) local(r lock.Record, token int64) lock.Record {
	r.Resource, r.Token = d.c.Local.Resource, token
	return r
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
