package locks

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// Break ends the lease of another owner. The events of the document contain the reason. Late requests of the lease's acquisition fail.
// Break fails with [ErrNotFound] if the lease has ended already.
func (t *Table) Break(ctx context.Context, l Lease, by Holder, why string) error {
	s, err := t.byID(ctx, l.ID, l.Holder.ID)
	if err != nil {
		return err
	}
	var ops []kv.Op
	var stubs *kv.Lease
	if s.Ticket != "" {
		if stubs, err = t.stubs.lease(ctx, t.store, StubKept); err != nil {
			return err
		}
		ops = append(ops, kv.PutBound(s.gone(), nil, stubs))
	}
	ended, err := t.end(ctx, s, Change{Reason: Broken, By: by, Why: why}, ops)
	if err != nil && stubs != nil {
		t.stubs.drop(stubs)
	}
	if err == nil && !ended {
		err = ErrNotFound
	}
	return err
}

// ByID returns a lease, whoever holds it, or [ErrNotFound].
func (t *Table) ByID(ctx context.Context, id string) (Lease, error) {
	s, err := t.byID(ctx, id, "")
	if err != nil && !errors.Is(err, ErrNotHolder) {
		return Lease{}, err
	}
	return t.name([]storedLease{s})[0], nil
}
