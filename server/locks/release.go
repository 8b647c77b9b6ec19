package locks

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// Release gives a lease back. One that has ended already is no error; somebody else's is [ErrNotHolder].
func (t *Table) Release(ctx context.Context, id, holder string) error {
	s, err := t.byID(ctx, id, holder)
	if err == nil {
		err = t.release(ctx, s)
	}
	return unlessEnded(err)
}

// ReleaseAt is Release for the exclusive lease on a path. A token other than 0 must be its own, or it is [ErrStaleToken].
func (t *Table) ReleaseAt(ctx context.Context, p Path, holder string, token int64) error {
	s, err := t.holderAt(ctx, p, holder, token)
	if err == nil {
		err = t.release(ctx, s)
	}
	return unlessEnded(err)
}

// Withdraw gives back a lease that was granted just now to somebody who was not there any more to hear of it. Where it has
// been extended since, its holder has asked again and heard of it: it stays.
func (t *Table) Withdraw(ctx context.Context, l Lease) error {
	s, err := t.byID(ctx, l.ID, l.Holder.ID)
	if err == nil {
		err = t.release(ctx, s, kv.ChangedAt(s.beatKey(), s.token))
	}
	return unlessEnded(err)
}

func (t *Table) release(ctx context.Context, s stand, conditions ...kv.Cond) error {
	ended, err := t.giveBack(ctx, s, conditions...)
	if ended {
		t.config.Metrics.Releases.Inc()
	}
	return err
}

func unlessEnded(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// giveBack ends a lease for the reason that it is released or, where somebody waits for it, transferred. That nobody does
// is confirmed by the transaction: this server may not have heard yet.
func (t *Table) giveBack(ctx context.Context, s stand, conditions ...kv.Cond) (bool, error) {
	if !t.wanted(s) {
		var w way
		w.first(s.claim)
		if ended, err := t.end(ctx, s, Released, append(w.conditions, conditions...)...); ended || err != nil {
			return ended, err
		}
	}
	return t.end(ctx, s, Transferred, conditions...)
}

// end deletes a lease with all its claims if it is still there, and under the further conditions.
func (t *Table) end(ctx context.Context, s stand, reason Reason, conditions ...kv.Cond) (bool, error) {
	keys := s.keys()
	// A condition on the revision: an absent key would match a token of 0.
	conditions = append(conditions, kv.CreatedAt(keys[0], s.token))
	ops := []kv.Op{kv.Delete(s.beatKey())}
	for _, key := range keys {
		ops = append(ops, kv.Delete(key))
	}
	ops = append(ops, t.record(Change{Reason: reason, Lease: s.lease(s.token, time.Time{})})...)
	result, err := t.store.Commit(ctx, kv.Txn{If: conditions, Then: ops})
	return result.Held, err
}

// wanted reports whether somebody waits for one of the lease's paths: standing in the way is mutual.
func (t *Table) wanted(s stand) bool {
	t.mirror.mu.Lock()
	defer t.mirror.mu.Unlock()
	return t.mirror.graph.Wanted(s.want())
}
