package locks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/server/kv"
)

// StubKept is for how long a place in line is kept at least for who does not wait there, see [Request.Ticket].
const StubKept = 30 * time.Second

// errGranted means that a request with the same ticket has been granted: what it got is this request's, too.
var errGranted = errors.New("an earlier request with this ticket has been granted")

// ticket is a request for a lease that may have to wait. While it does, it is at every path under locks/wait/. These keys
// are in others' way, and go with the server that has the request. Its stub, under locks/stub/, is in nobody's way and
// outlasts both: with it a request that comes again has its lease's name, and so its place.
type ticket struct {
	claim
	// Place is the revision at which the first of the requests with the stub came, and none in the store while that is
	// the only one.
	Place int64 `json:"place,omitempty"`
	// Turn is the place that a ticket has when it is not first any more, and none while that is not known.
	Turn int64 `json:"turn,omitempty"`
	// Visit tells the requests with one stub apart: that of the last alone is granted.
	Visit string `json:"visit"`

	first  int64  // the place that does not depend on when it came, see [Request.First]; 0 for none
	joined int64  // the revision of the visit; 0 outside the line
	must   int64  // what this server must have heard of before it tries again
	stub   string // its key
	text   []byte // what the store has
}

func newTicket(r Request, at time.Time) *ticket {
	t := &ticket{claim: newClaim(r, at)}
	if r.First {
		t.goBefore(front)
	}
	t.stub = stubKey(t.Holder, cmp.Or(t.Ticket, t.Lease))
	return t
}

// gone is the key that is there once the acquisition of a named ticket was given up.
func (c claim) gone() string { return gonePrefix + c.Holder + "/" + c.Ticket }

func stubKey(holder, name string) string { return stubPrefix + holder + "/" + name }

func (t *ticket) goBefore(place int64) { t.first, t.Place = place, place }

// front and passedOn are places before those of all who came by themselves: no ticket is in the store at its first revisions.
const front, passedOn = 1, 2

// named reports whether the client, who may come again, has named the ticket.
func (t *ticket) named() bool { return t.Ticket != "" }

// got reports whether a claim is of the lease that the ticket's acquisition has got.
func (t *ticket) got(c claim) bool {
	return t.named() && c.Ticket == t.Ticket && c.Holder == t.Holder && t.asksFor(c)
}

func decodeTicket(e kv.Entry) (ticket, bool) {
	t := ticket{joined: e.Modified}
	err := json.Unmarshal(e.Value, &t)
	if t.Place == 0 {
		t.Place = e.Created
	}
	return t, err == nil && len(t.Paths) > 0
}

// turn is the place that the ticket of a stub has in the order of arrival.
func (t *ticket) turn(stub kv.Entry) int64 {
	switch {
	case t.Turn > 0:
		return t.Turn
	case t.Place <= passedOn:
		return stub.Created
	}
	return t.Place
}

// waitKeys returns the keys under which the request waits.
func (t *ticket) waitKeys() []string {
	mark := exclusiveMark
	if t.Mode == Shared {
		mark = sharedMark
	}
	list := make([]string, len(t.Paths))
	for i, p := range t.Paths {
		list[i] = node(waitPrefix, p) + mark + t.Lease
	}
	return list
}

// leaseOf returns the lease that a wait key is of.
func leaseOf(key string) string {
	mark := key[strings.LastIndexByte(key, '/')+1:]
	return mark[min(len(exclusiveMark), len(mark)):]
}

// removal returns what takes a ticket that is granted out of the line.
func (t *ticket) removal() (ops []kv.Op) {
	if t.joined > 0 {
		ops = t.absence()
	}
	if t.joined > 0 || t.named() {
		ops = append(ops, kv.Delete(t.stub))
	}
	return ops
}

func (t *ticket) absence() (ops []kv.Op) {
	for _, key := range t.waitKeys() {
		ops = append(ops, kv.Delete(key))
	}
	return ops
}

// asksFor reports whether two requests are for the same.
func (t *ticket) asksFor(c claim) bool {
	return t.Mode == c.Mode && t.Slots == c.Slots && samePaths(t.Paths, c.Paths)
}

// join puts a ticket in line: at the place of its stub, if there is one, otherwise at the end. One that was in line
// before is put there again, unless a later request has come with its stub.
func (t *Table) join(ctx context.Context, own *ticket, wait time.Duration) error {
	instance, stubs, err := t.leases(ctx, wait+StubKept)
	if err != nil {
		return err
	}
	condition := kv.Absent(own.stub)
	if own.joined > 0 {
		condition = kv.Holds(own.stub, own.text)
	}
	conditions, reads := []kv.Cond{condition}, []kv.Op{kv.Read(own.stub)}
	if own.named() {
		conditions, reads = append(conditions, kv.Absent(own.gone())), append(reads, kv.Read(own.gone()))
	}
	for {
		own.Visit = newID()
		if own.text, err = json.Marshal(own); err != nil {
			return err
		}
		puts := []kv.Op{kv.PutBound(own.stub, own.text, stubs)}
		for _, key := range own.waitKeys() {
			puts = append(puts, kv.PutBound(key, own.text, instance))
		}
		result, err := t.commit(ctx, kv.Txn{If: conditions, Then: puts, Else: reads})
		switch {
		case err != nil:
			t.stubs.drop(stubs)
			return err
		case result.Held:
			own.joined = result.Revision
			if own.Place == 0 {
				own.Place = result.Revision
			}
			return nil
		case standing(result.Reads).gone:
			return ErrGivenUp
		case own.joined > 0:
			return ErrReplaced
		}
		if conditions[0], err = own.adopt(result.Reads[0]); err != nil {
			return err
		}
	}
}

// leases returns what a place in line and its stub are bound to. Nothing was asked of the table yet, so the end of ctx is the
// error then.
func (t *Table) leases(ctx context.Context, kept time.Duration) (instance, stubs *kv.Lease, err error) {
	if instance, err = t.instanceLease(ctx); err == nil {
		stubs, err = t.stubs.lease(ctx, t.store, kept)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return instance, stubs, err
}

// adopt takes over the lease's name and the place of the stub that was read, on the condition that it returns. A stub that
// is gone again was granted: that lease is another one.
func (t *ticket) adopt(stubs []kv.Entry) (kv.Cond, error) {
	if len(stubs) == 0 {
		t.Lease, t.Turn = newID(), 0
		t.Place = t.first
		return kv.Absent(t.stub), nil
	}
	stub, ok := decodeTicket(stubs[0])
	if !ok || !t.asksFor(stub.claim) {
		return kv.Cond{}, &InvalidError{"this ticket is for another lock"}
	}
	t.Lease, t.Place, t.Locked = stub.Lease, stub.turn(stubs[0]), stub.Locked
	if t.first > 0 {
		t.Place, t.Turn = t.first, t.Place
	}
	return kv.Unchanged(stubs[0]), nil
}

// leave takes a ticket out of the line, whatever became of the caller's context; the stub stays where the client may come
// again. When it has, the ticket in line is not this request's.
func (t *Table) leave(own *ticket) {
	if own.text == nil {
		return // it never came so far
	}
	ctx, cancel := context.WithTimeout(context.Background(), t.config.InstanceTTL)
	defer cancel()
	if err := t.takeOut(ctx, own); err != nil {
		t.config.Log.Warn("a place in line could not be given up; it is tried again", "error", err)
		select {
		case t.leaving <- own:
		case <-t.closed:
		}
	}
}

func (t *Table) takeOut(ctx context.Context, own *ticket) error {
	ops := own.absence()
	if !own.named() {
		ops = append(ops, kv.Delete(own.stub))
	}
	_, err := t.store.Commit(ctx, kv.Txn{If: []kv.Cond{kv.Holds(own.waitKeys()[0], own.text)}, Then: ops})
	return err
}

// takeOutLater takes out of the line, until the table is closed, those whom the store did not let go when they left: this
// server lives, so their places would stay, in everybody's way.
func (t *Table) takeOutLater(ctx context.Context) {
	for {
		select {
		case own := <-t.leaving:
			t.running.Go(func() {
				for t.takeOut(ctx, own) != nil && wait.For(ctx, againAfter) == nil {
				}
			})
		case <-ctx.Done():
			return
		}
	}
}

// countdown has a lease for stubs, which nobody renews: another one is taken when its time gets short.
type countdown struct {
	mu    sync.Mutex
	last  *kv.Lease
	until time.Time
}

// round is for how long new stubs share a lease.
const round = 30 * time.Second

// lease returns one that lasts for ttl or a little longer.
func (c *countdown) lease(ctx context.Context, store Store, ttl time.Duration) (*kv.Lease, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.last != nil && !c.until.Before(now.Add(ttl)) {
		return c.last, nil
	}
	lease, err := store.Countdown(ctx, ttl+round)
	if err == nil {
		c.last, c.until = lease, now.Add(ttl+round)
	}
	return lease, err
}

// drop has the next stub take another lease: this one may be gone.
func (c *countdown) drop(lease *kv.Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == lease {
		c.last = nil
	}
}
