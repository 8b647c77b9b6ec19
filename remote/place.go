package remote

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// Lock implements [lock.RemoteLocker]: a place of the project is below its document on the server. Each lease on places
// is a lease of the server with an id of its own.
func (d *Document) Lock(ctx context.Context, p *lock.Place, local lock.Grant, ifAvailable bool) (lock.RemoteGrant, error) {
	t := target{ifAvailable: ifAvailable, nested: p.Within != 0, steal: p.Steal, request: func(wait time.Duration, a acquisition) Request {
		fields := d.fields()
		fields["paths"], fields["mode"], fields["slots"] = d.paths(p), string(p.Mode), max(1, p.Slots)
		fields["wait_ms"], fields["ticket"], fields["replace"] = wait.Milliseconds(), a.ticket, append([]int64{}, a.replace...)
		fields["browser"] = d.c.Browser
		if a.passOn {
			fields["pass_on"] = true
		}
		return Request{Method: "POST", Path: "/api/locks", Fields: fields}
	}}
	if len(p.Paths) == 1 && p.Mode == lock.Exclusive && p.Slots < 2 {
		if id, err := d.ID(p.Paths[0]); err == nil { // it is a document, whose holder can be asked
			t.document = id
			t.question = func(grace time.Duration, a acquisition) Request { return d.ask(id, grace, a) }
		}
	}
	reply, err := d.take(ctx, local, t)
	if err != nil {
		return nil, err
	}
	c := reply.claim("/api/locks/" + reply.Lease)
	return &place{d.client, local, c, reply.Slot, d.held.add(c, p.Within)}, nil
}

// paths returns the paths of a place on the server.
func (d *Document) paths(p *lock.Place) (paths [][]string) {
	for _, path := range p.Paths {
		paths = append(paths, append([]string{"documents", d.c.Document}, path...))
	}
	if paths == nil {
		// The leases around it already exclude everybody else. A path of its own gives it a token.
		paths = [][]string{{"leases", p.LeaseID}}
	}
	return paths
}

// place is a [lock.RemoteGrant]: a lease of the server on places.
type place struct {
	*client
	local lock.Grant // on this machine
	claim claim
	slot  int
	held  *term
}

// Slot implements [lock.RemoteGrant].
func (p *place) Slot() int { return p.slot }

// Lost is closed when the place was passed on. The next renewal reports any other loss.
func (p *place) Lost() <-chan struct{} { return p.held.lost }

// Look implements [lock.Grant]. There is nothing to look at: the next renewal reports a loss.
func (p *place) Look(context.Context, lock.Instant) error { return nil }

// Release releases the lease. No other lease has its id, so the request can be repeated.
func (p *place) Release(ctx context.Context) error {
	p.client.held.remove(p.held)
	return p.end(ctx, p.held, p.local)
}

// Claim implements [lock.Records]. The token is the server's.
func (p *place) Claim(ctx context.Context, r lock.Record, _ bool) (int64, error) {
	return p.confirm(ctx, p.claim, r)
}

// Renew implements [lock.Records].
func (p *place) Renew(ctx context.Context, _ lock.Record) error { return p.renew(ctx, p.claim) }

// Read implements [lock.Records]: there is no record except the server's lease.
func (p *place) Read(context.Context, string) (lock.Record, bool, error) {
	return lock.Record{}, false, nil
}

// Remove implements [lock.Records].
func (p *place) Remove(context.Context, lock.Record) error { return nil }
