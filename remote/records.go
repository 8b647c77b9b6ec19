package remote

import (
	"context"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// Claim implements [lock.Records]. The token is the server's.
func (d *Document) Claim(ctx context.Context, r lock.Record, stolen bool) (int64, error) {
	d.mu.Lock()
	c := d.last.claim
	d.mu.Unlock()
	token, err := d.confirm(ctx, c, r)
	if err != nil || d.c.Local.Records == nil {
		return token, err
	}
	local, err := d.c.Local.Records.Claim(ctx, d.local(r, 0), stolen)
	d.mu.Lock()
	d.last.local = local
	d.mu.Unlock()
	return token, err
}

// Renew implements [lock.Records].
func (d *Document) Renew(ctx context.Context, r lock.Record) error {
	if err := d.renew(ctx, claim{path: d.path + "/lock", token: r.Token}); err != nil {
		return err
	}
	return d.renewHere(ctx, r)
}

func (d *Document) renewHere(ctx context.Context, r lock.Record) error {
	if d.c.Local.Records == nil {
		return nil
	}
	d.mu.Lock()
	local := d.last.local
	d.mu.Unlock()
	return d.c.Local.Records.Renew(ctx, d.local(r, local))
}

// Read implements [lock.Records]: it returns the record on the server.
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
	return lock.Record{Resource: d.resource, OwnerName: reply.HolderName, Token: reply.Token,
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
	r.Resource, r.Token = d.c.Local.Name(), token
	return r
}

func millis(d time.Duration) string { return itoa(d.Milliseconds()) }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
