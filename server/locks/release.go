package locks

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// Release gives a lease back. One that has ended already is no error; somebody else's is [ErrNotHolder].
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

// ReleaseAt is Release for the exclusive lease on a path. A token other than 0 must be its own, or it is [ErrStaleToken].
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

// releaseSeen gives back a lease as this server has seen it, which saves a read of the store: the transaction confirms that the lease
// is still there. It reports whether that was so.
func (t *Table) releaseSeen(ctx context.Context, s stand, seen bool) (bool, error) {
	if !seen {
		return false, nil
	}
	if over, err := t.settle(ctx, s); over || err != nil {
		return false, err
	}
	ended, err := t.endAcquisition(ctx, s)
	if ended {
		t.config.Metrics.Releases.Inc()
	}
	return ended, err
}

// Withdraw gives back a lease that was granted just now to somebody who was not there any more to hear of it. Where it has
// been extended since, its holder has asked again and heard of it: it stays.
func (t *Table) Withdraw(ctx context.Context, l Lease) error {
	s, err := t.byID(ctx, l.ID, l.Holder.ID)
	if err == nil {
		_, err = t.giveBack(ctx, s, nil, kv.ChangedAt(s.beatKey(), s.token))
	}
	return unlessEnded(err)
}

// GiveUp ends an acquisition by its ticket, whatever became of it: its place in line goes, a lease that was granted is given
// back, and requests with the ticket that arrive later fail with [ErrGivenUp], for at least [StubKept].
func (t *Table) GiveUp(ctx context.Context, holder, name string) error {
	own := ticket{claim: claim{Holder: holder, Ticket: name}, stub: stubKey(holder, name)}
	if !ticketName.MatchString(name) || !own.named() {
		return &InvalidError{`a ticket has 1 to 64 letters, digits, "-" and "_"`}
	}
	revision, err := t.close(ctx, &own)
	if err != nil {
		return err
	}
	// A grant under the ticket is older than that revision.
	if err := t.hear(ctx, revision); err != nil {
		return err
	}
	t.mirror.mu.Lock()
	h := t.mirror.asked[askedKey(own.claim)]
	t.mirror.mu.Unlock()
	if h == nil {
		return nil
	}
	ended, err := t.giveBack(ctx, h.stand(), nil)
	if ended {
		t.config.Metrics.Releases.Inc()
	}
	return err
}

// close takes the place of a ticket out of the line, has later requests with it fail, and returns from which revision on.
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

// hear waits until this server has heard of a revision.
func (t *Table) hear(ctx context.Context, revision int64) error {
	ctx, cancel := context.WithTimeoutCause(ctx, heardWithin, errDeaf)
	defer cancel()
	w := &waiting{bell: make(bell, 1)}
	defer t.forget(w)
	t.mirror.mu.Lock()
	heard := t.mirror.revision >= revision
	if !heard {
		t.mirror.rings.awaitRevision(w, revision)
	}
	t.mirror.mu.Unlock()
	if heard {
		return nil
	}
	select {
	case <-w.bell:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// release gives back a lease, and ends its acquisition with it.
func (t *Table) release(ctx context.Context, s stand) error {
	ended, err := t.endAcquisition(ctx, s)
	if ended {
		t.config.Metrics.Releases.Inc()
	}
	return err
}

// endAcquisition gives back a lease, and has requests with its ticket that arrive late fail.
func (t *Table) endAcquisition(ctx context.Context, s stand) (bool, error) {
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

// giveBack ends a lease for the reason that it is released or, where somebody waits for it, transferred. The transaction
// confirms that nobody waits: this server may not have heard yet. It carries out the further operations, too.
func (t *Table) giveBack(ctx context.Context, s stand, ops []kv.Op, conditions ...kv.Cond) (bool, error) {
	if !t.wanted(s) {
		var w way
		w.first(s.claim)
		if ended, err := t.end(ctx, s, Released, ops, append(w.conditions, conditions...)...); ended || err != nil {
			return ended, err
		}
	}
	return t.end(ctx, s, Transferred, ops, conditions...)
}

// end deletes a lease with all its claims if it is still there, and under the further conditions.
func (t *Table) end(ctx context.Context, s stand, reason Reason, ops []kv.Op, conditions ...kv.Cond) (bool, error) {
	keys := s.keys()
	// A condition on the revision: an absent key would match a token of 0.
	conditions = append(conditions, kv.CreatedAt(keys[0], s.token))
	ops = append([]kv.Op{kv.Delete(s.beatKey())}, ops...)
	for _, key := range keys {
		ops = append(ops, kv.Delete(key))
	}
	ops = append(ops, t.record(Change{Reason: reason, Lease: s.lease(s.token, time.Time{})})...)
	result, err := t.store.Commit(ctx, kv.Txn{If: conditions, Then: ops})
	if result.Held {
		t.mirror.unnote(keys[0], s.token)
		for _, room := range s.lease(s.token, time.Time{}).documents() {
			t.config.Ended(room, result.Revision)
		}
	}
	return result.Held, err
}

// wanted reports whether somebody waits for one of the lease's paths: standing in the way is mutual.
func (t *Table) wanted(s stand) bool {
	t.mirror.mu.Lock()
	defer t.mirror.mu.Unlock()
	return t.mirror.graph.Wanted(s.want())
}
