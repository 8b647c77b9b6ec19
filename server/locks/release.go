package locks

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// Release ends a lease. If the lease has already ended, that is no error. If another owner holds it, Release fails
// with [ErrNotHolder].
func (t *Table) Release(ctx context.Context, id, holder string) error {
	seen, ok := t.seenByID(id, holder)
	if done, err := t.releaseSeen(ctx, seen, ok); done || err != nil {
		return err
	}
	s, err := t.byID(ctx, id, holder)
	if err == nil {
		err = t.release(ctx, s)
	}
	return unlessEnded(err)
}

// ReleaseAt is Release for the exclusive lease on a path. If token is not 0, the lease must have it, or ReleaseAt
// fails with [ErrStaleToken].
func (t *Table) ReleaseAt(ctx context.Context, p Path, holder string, token int64) error {
	seen, ok := t.seenAt(p, holder)
	if done, err := t.releaseSeen(ctx, seen, ok && seen.bears(token)); done || err != nil {
		return err
	}
	s, err := t.holderAt(ctx, p, holder, token)
	if err == nil {
		err = t.release(ctx, s)
	}
	return unlessEnded(err)
}

// releaseSeen releases a lease from this server's view, which saves a read of the store. The transaction confirms
// that the lease still exists. releaseSeen reports whether it did.
func (t *Table) releaseSeen(ctx context.Context, s storedLease, seen bool) (bool, error) {
	if !seen {
		return false, nil
	}
	if over, err := t.endIfDue(ctx, s); over || err != nil {
		return false, err
	}
	ended, err := t.endAcquisition(ctx, s)
	if ended {
		t.config.Metrics.Releases.Inc()
	}
	return ended, err
}

// ReleaseAll ends the leases of holders, as when a browser signs out, and gives up the named tickets with which they wait. It does not
// affect other requests that are under way.
func (t *Table) ReleaseAll(ctx context.Context, holders []string) error {
	if err := t.catchUp(ctx); err != nil {
		return err
	}
	leases, tickets := t.allOf(holders)
	var waits, all errgroup.Group
	waits.SetLimit(releasesAtOnce)
	for _, own := range tickets { // first, because a release would grant to them
		waits.Go(func() error { return t.GiveUp(ctx, own.Holder, own.Ticket) })
	}
	err := waits.Wait()
	all.SetLimit(releasesAtOnce)
	for _, s := range leases {
		all.Go(func() error { return t.release(ctx, s) })
	}
	return errors.Join(err, all.Wait())
}

// allOf returns the leases and the named tickets of holders in this server's view.
func (t *Table) allOf(holders []string) (leases []storedLease, tickets []claim) {
	t.mirror.mu.Lock()
	defer t.mirror.mu.Unlock()
	for _, holder := range holders {
		for _, id := range t.mirror.graph.Held(holder) {
			leases = append(leases, t.mirror.held[id].storedLease())
		}
		t.mirror.graph.AnyTicket(holder, func(id string) bool {
			if own := t.mirror.tickets[id]; own.named() {
				tickets = append(tickets, own.claim)
			}
			return false
		})
	}
	return leases, tickets
}

// releasesAtOnce is the number of leases that ReleaseAll ends together. Those of one moment share a transaction.
const releasesAtOnce = 32

// Drop releases a lease that its holder has not received, or no longer needs. If the store does not answer, the table tries again, because
// nobody else releases the lease before its time.
func (t *Table) Drop(ctx context.Context, l Lease) {
	release := func(ctx context.Context) error { return t.Release(ctx, l.ID, l.Holder.ID) }
	if err := release(ctx); err != nil {
		t.config.Log.Warn("a lease could not be released; the server tries again", "error", err)
		t.tryUntilDone(release)
	}
}

// Withdraw releases a lease that was just granted to a client that is no longer there. If the lease has been extended
// since, the holder has asked again and received it, so the lease stays.
func (t *Table) Withdraw(ctx context.Context, l Lease) error {
	s, err := t.byID(ctx, l.ID, l.Holder.ID)
	if err == nil {
		_, err = t.giveBackAfter(ctx, s, s.token, nil)
	}
	return unlessEnded(err)
}

// GiveUp ends the acquisition of a ticket, whatever its state: it removes the place in the queue and releases a
// granted lease. Later requests with the ticket fail with [ErrGivenUp] for at least [StubKept].
func (t *Table) GiveUp(ctx context.Context, holder, name string) error {
	own := ticket{claim: claim{Holder: holder, Ticket: name}, stub: stubKey(holder, name)}
	if !ticketName.MatchString(name) || !own.named() {
		return &InvalidError{`a ticket has 1 to 64 letters, digits, "-" and "_"`}
	}
	revision, err := t.close(ctx, &own)
	if err != nil {
		return err
	}
	// A grant under the ticket has a smaller revision.
	if err := t.catchUpTo(ctx, revision); err != nil {
		return err
	}
	t.mirror.mu.Lock()
	var granted []storedLease // more than one, if the client has used the ticket for several locks
	for _, h := range t.mirror.asked[askedKey(own.claim)] {
		granted = append(granted, h.storedLease())
	}
	t.mirror.mu.Unlock()
	for _, s := range granted {
		ended, err := t.giveBack(ctx, s, nil)
		if ended {
			t.config.Metrics.Releases.Inc()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// close removes a ticket's place from the queue and makes later requests with it fail. It returns the revision from
// which on they fail.
func (t *Table) close(ctx context.Context, own *ticket) (int64, error) {
	lease, err := t.stubs.lease(ctx, t.store, StubKept)
	if err != nil {
		return 0, err
	}
	for {
		e, _, err := t.store.Get(ctx, own.stub)
		if err == nil && !e.Found() {
			err = t.mayForbid(ctx, own)
		}
		if err != nil {
			return 0, err
		}
		condition, ops := kv.Absent(own.stub), []kv.Op{kv.PutBound(own.gone(), nil, lease)}
		if e.Found() {
			condition, ops = kv.Unchanged(e), append(ops, kv.Delete(own.stub))
			if waiting, ok := decodeTicket(e); ok {
				ops = append(ops, waiting.absence()...)
			}
		}
		result, err := t.store.Commit(ctx, kv.Txn{If: []kv.Cond{condition}, Then: ops})
		if err != nil {
			t.stubs.drop(lease)
			return 0, err
		}
		if result.Held {
			return result.Revision, nil
		}
	}
}

// catchUpTo waits until this server's view reaches a revision.
func (t *Table) catchUpTo(ctx context.Context, revision int64) error {
	ctx, cancel := context.WithTimeoutCause(ctx, catchUpLimit, errBehind)
	defer cancel()
	w := &waiting{notifier: make(notifier, 1)}
	defer t.forget(w)
	t.mirror.mu.Lock()
	reached := t.mirror.revision >= revision
	if !reached {
		t.mirror.notifiers.awaitRevision(w, revision)
	}
	t.mirror.mu.Unlock()
	if reached {
		return nil
	}
	select {
	case <-w.notifier:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// release releases a lease and ends its acquisition.
func (t *Table) release(ctx context.Context, s storedLease) error {
	ended, err := t.endAcquisition(ctx, s)
	if ended {
		t.config.Metrics.Releases.Inc()
	}
	return err
}

// endAcquisition releases a lease and makes late requests with its ticket fail.
func (t *Table) endAcquisition(ctx context.Context, s storedLease) (bool, error) {
	if s.Ticket == "" {
		return t.giveBack(ctx, s, nil)
	}
	lease, err := t.stubs.lease(ctx, t.store, StubKept)
	if err != nil {
		return false, err
	}
	ended, err := t.giveBack(ctx, s, []kv.Op{kv.PutBound(s.gone(), nil, lease)})
	if err != nil {
		t.stubs.drop(lease)
	}
	return ended, err
}

func unlessEnded(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// giveBack ends a lease. A transaction that is late in the store must not end a lease that its holder has extended since. So it requires the
// last heartbeat, and giveBack tries again after another one.
func (t *Table) giveBack(ctx context.Context, s storedLease, ops []kv.Op) (bool, error) {
	for last := t.mirror.beatOf(s); ; {
		ended, err := t.giveBackAfter(ctx, s, last, ops)
		if ended || err != nil {
			return ended, err
		}
		now, err := t.store.Commit(ctx, kv.Txn{Then: []kv.Op{kv.Read(s.home()), kv.Read(s.beatKey())}})
		if err != nil || len(now.Reads[0]) == 0 || now.Reads[0][0].Created != s.token || len(now.Reads[1]) == 0 {
			return false, err
		}
		last = now.Reads[1][0].Modified
	}
}

// giveBackAfter ends a lease whose last heartbeat has a revision, with the reason Released, or Transferred if another request waits for it. This
// server's view may lag, so the transaction for Released confirms that nobody waits. Both also run the further operations.
func (t *Table) giveBackAfter(ctx context.Context, s storedLease, last int64, ops []kv.Op) (bool, error) {
	after := kv.ChangedAt(s.beatKey(), last)
	if !t.wanted(s) {
		if ended, err := t.end(ctx, s, Change{Reason: Released}, ops, append(s.unwanted(), after)...); ended || err != nil {
			return ended, err
		}
	}
	return t.end(ctx, s, Change{Reason: Transferred}, ops, after)
}

// end deletes a lease and all its claims, if it still exists and the further conditions hold.
func (t *Table) end(ctx context.Context, s storedLease, why Change, ops []kv.Op, conditions ...kv.Cond) (bool, error) {
	keys := s.keys()
	// The condition is on the revision: an absent key would match a token of 0.
	conditions = append(conditions, kv.CreatedAt(keys[0], s.token))
	ops = append(append(make([]kv.Op, 0, usual), kv.Delete(beatOf(keys[0]))), ops...)
	for _, key := range keys {
		ops = append(ops, kv.Delete(key))
	}
	if asked, needed := s.asked(); needed {
		ops = append(ops, kv.Delete(asked))
	}
	why.Lease = s.lease(s.token, time.Time{})
	ops = append(ops, t.record(why)...)
	result, err := t.store.Commit(ctx, kv.Txn{If: conditions, Then: ops})
	if result.Held {
		t.mirror.unnote(keys[0], s.token)
		for _, document := range why.Lease.documents() {
			t.config.Ended(document, result.Revision)
		}
	}
	return result.Held, err
}

// wanted reports whether another request waits for one of the lease's paths. Conflicts are symmetric. A view that is older than the lease
// may still have the lease's own place in the queue, so it reports nothing.
func (t *Table) wanted(s storedLease) bool {
	t.mirror.mu.Lock()
	defer t.mirror.mu.Unlock()
	return t.mirror.revision >= s.token && t.mirror.graph.Wanted(s.want())
}
