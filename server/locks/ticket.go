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

// StubKept is the minimum time that a place in the queue is kept without a waiting request, see [Request.Ticket].
const StubKept = 30 * time.Second

// errGranted means that a request with the same ticket has been granted. That lease is also this request's.
var errGranted = errors.New("an earlier request with this ticket has been granted")

// errOwnLease means that a lease of the request's own holder conflicts with it, which this server's view did not show when the request
// joined the queue. Nobody else may end that lease, so the request must not wait for it.
var errOwnLease = errors.New("a lease of the same holder is in the way")

var errOtherLock = &InvalidError{"this ticket is for another lock"}

// ticket is a request for a lease that may have to wait. While it waits, it has keys for every path under
// locks/wait/. These keys block others, and end with the server that has the request. Its stub, under locks/stub/,
// blocks nobody and outlives both. A request that comes again finds its lease's name and its place in the stub.
type ticket struct {
	claim
	// Place is the revision at which the first request with the stub came. It is not stored while that is the only
	// request.
	Place int64 `json:"place,omitempty"`
	// Turn is the place of a ticket when it no longer has First. It is not stored while unknown.
	Turn int64 `json:"turn,omitempty"`
	// Visit distinguishes the requests with the same stub: only the last one is granted.
	Visit string `json:"visit"`

	first     int64  // a place independent of the arrival, see [Request.First]; 0 for none
	joined    int64  // the revision of the visit; 0 outside the queue
	must      int64  // the revision that this server's view must reach before the next try
	stub      string // its key
	text      []byte // the stored text
	userLocks int    // see [Request.UserLocks]

	concerns func([]storedLease) bool // see [Request.concerns]; nil once this server's view has shown the conflicts with the ticket
	passedOn []storedLease            // see [Request.PassOn]
}

func newTicket(r Request, at time.Time) *ticket {
	t := &ticket{claim: newClaim(r, at), userLocks: r.UserLocks}
	if r.First {
		t.goBefore(front)
	}
	t.stub = stubKey(t.Holder, cmp.Or(t.Ticket, t.Lease))
	t.concerns = func(claims []storedLease) bool { return r.concerns(t, claims) }
	return t
}

// gone is the key that exists after a named ticket's acquisition was given up.
func (c claim) gone() string { return gonePrefix + c.Holder + "/" + c.Ticket }

// asked is the key that exists while the lease of a named ticket does. Its value is the first key of the lease. Only
// leases that do not exclude each other need it: without it, one ticket could get several of them from servers that do
// not see each other's grants yet.
func (c claim) asked() (key string, needed bool) {
	return askedPrefix + askedKey(c), c.Ticket != "" && !whole(c.Mode, c.Slots)
}

func stubKey(holder, name string) string { return stubPrefix + holder + "/" + name }

func (t *ticket) goBefore(place int64) { t.first, t.Place = place, place }

// front and passedOn are places before all ordinary requests: the store's first revisions contain no ticket.
const front, passedOn = 1, 2

// named reports whether the client named the ticket, so that it may come again.
func (t *ticket) named() bool { return t.Ticket != "" }

// got reports whether a claim is the lease of the ticket's acquisition.
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

// turn is the place of a stub's ticket in the order of arrival.
func (t *ticket) turn(stub kv.Entry) int64 {
	switch {
	case t.Turn > 0:
		return t.Turn
	case t.Place <= passedOn:
		return stub.Created
	}
	return t.Place
}

// waitKeys returns the keys of the waiting request.
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

// leaseOf returns the lease in a wait key.
func leaseOf(key string) string {
	mark := key[strings.LastIndexByte(key, '/')+1:]
	return mark[min(len(exclusiveMark), len(mark)):]
}

// grantedBefore returns [errGranted] when this server's view has the lease with the ticket, or has seen its end. It
// fails with *[InvalidError] if that lease is for another place: asking again would never end.
func (t *Table) grantedBefore(ctx context.Context, own *ticket, f found) error {
	if err := t.catchUpTo(ctx, f.granted); err != nil {
		return err
	}
	m := t.mirror
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.homes[f.home]
	if f.home == "" || h != nil && h.token == f.granted && !own.got(h.claim) {
		return errOtherLock // a later lease may have the slot of one that has ended
	}
	return errGranted
}

// removal returns the operations that remove a granted ticket from the queue.
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

// asksFor reports whether the ticket requests the same as a claim.
func (t *ticket) asksFor(c claim) bool {
	return t.Mode == c.Mode && t.Slots == c.Slots && samePaths(t.Paths, c.Paths)
}

// join puts a ticket into the queue: at the place of its stub, if there is one, otherwise at the end. A ticket that
// was in the queue before is put back, unless a later request has come with its stub.
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
		t.mirror.visits.enter(own)
		if own.text, err = json.Marshal(own); err != nil {
			return err
		}
		puts := []kv.Op{kv.PutBound(own.stub, own.text, stubs)}
		for _, key := range own.waitKeys() {
			puts = append(puts, kv.PutBound(key, own.text, instance))
		}
		result, err := t.commit(ctx, kv.Txn{If: conditions, Then: puts, Else: reads, Apart: lineApart})
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
		case readConflicts(result.Reads).gone:
			return ErrGivenUp
		case own.joined > 0:
			return ErrReplaced
		}
		if conditions[0], err = own.adopt(result.Reads[0]); err != nil {
			return err
		}
	}
}

// leases returns the leases to which a place in the queue and its stub are bound. The table has received no request
// yet, so if ctx ends, its cause is the error.
func (t *Table) leases(ctx context.Context, kept time.Duration) (instance, stubs *kv.Lease, err error) {
	if instance, err = t.instanceLease(ctx); err == nil {
		stubs, err = t.stubs.lease(ctx, t.store, kept)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return instance, stubs, err
}

// adopt takes over the lease's name and the place of the stub that was read, on the returned condition. A stub that
// is gone was granted, so the ticket gets a new lease name.
func (t *ticket) adopt(stubs []kv.Entry) (kv.Cond, error) {
	if len(stubs) == 0 {
		t.Lease, t.Turn = newID(), 0
		t.Place = t.first
		return kv.Absent(t.stub), nil
	}
	stub, ok := decodeTicket(stubs[0])
	if !ok || !t.asksFor(stub.claim) {
		return kv.Cond{}, errOtherLock
	}
	t.Lease, t.Place, t.Locked = stub.Lease, stub.turn(stubs[0]), stub.Locked
	if t.first > 0 {
		t.Place, t.Turn = t.first, t.Place
	}
	return kv.Unchanged(stubs[0]), nil
}

// leave removes a ticket from the queue, even after the caller's context has ended. The stub stays if the client may
// come again. If it has come again, the ticket in the queue belongs to the later request and stays.
func (t *Table) leave(own *ticket) {
	if own.text == nil {
		return // it never joined the queue
	}
	t.mirror.visits.leave(own)
	ctx, cancel := context.WithTimeout(context.Background(), t.config.InstanceTTL)
	defer cancel()
	if err := t.takeOut(ctx, own); err != nil {
		t.config.Log.Warn("a place in the queue could not be removed; the server tries again", "error", err)
		t.tryUntilDone(func(ctx context.Context) error { return t.takeOut(ctx, own) })
	}
}

func (t *Table) takeOut(ctx context.Context, own *ticket) error {
	ops := own.absence()
	if !own.named() {
		ops = append(ops, kv.Delete(stubKey(own.Holder, own.Lease)))
	}
	_, err := t.store.Commit(ctx, kv.Txn{If: []kv.Cond{kv.Holds(own.waitKeys()[0], own.text)}, Then: ops})
	return err
}

// tryUntilDone repeats what the store could not do, until it succeeds or the table is closed. It is for places and leases that nobody
// else removes: this server lives, so they would stay and block others.
func (t *Table) tryUntilDone(do func(context.Context) error) {
	select {
	case t.later <- do:
	case <-t.closed:
	}
}

func (t *Table) tryLater(ctx context.Context) {
	for {
		select {
		case do := <-t.later:
			t.running.Go(func() {
				for do(ctx) != nil && wait.For(ctx, againAfter) == nil {
				}
			})
		case <-ctx.Done():
			return
		}
	}
}

// countdown provides a lease for stubs that nobody renews. It acquires another one when the remaining time gets
// short.
type countdown struct {
	turn  turn       // held while the store is asked
	mu    sync.Mutex // of the fields below
	last  *kv.Lease
	until time.Time
}

// round is how long new stubs share a lease.
const round = 30 * time.Second

// lease returns a lease that lasts for ttl or a little longer.
func (c *countdown) lease(ctx context.Context, store Store, ttl time.Duration) (*kv.Lease, error) {
	if err := c.turn.take(ctx); err != nil {
		return nil, err
	}
	defer c.turn.leave()
	now := time.Now()
	if last := c.lasting(now.Add(ttl)); last != nil {
		return last, nil
	}
	lease, err := store.Countdown(ctx, ttl+round)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.last, c.until = lease, now.Add(ttl+round)
	}
	return lease, err
}

// lasting returns the last lease if it lasts until a time.
func (c *countdown) lasting(until time.Time) *kv.Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until.Before(until) {
		return nil
	}
	return c.last
}

// drop makes the next stub use another lease, because this one may be gone.
func (c *countdown) drop(lease *kv.Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == lease {
		c.last = nil
	}
}
