package asks

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// acquire acquires a lock that is free. It fails with errMoved if another client gets it first.
func (d *Desk) acquire(ctx context.Context, r locks.Request, grace time.Duration) (locks.Lease, error) {
	r.Wait = 0
	lease, err := d.table.Acquire(ctx, r)
	var denied *locks.DeniedError
	if !errors.As(err, &denied) {
		return lease, err
	}
	mine := func(l locks.Lease) bool { return l.Holder.ID == r.Holder.ID }
	if grace > 0 && len(denied.Holders) > 0 && !slices.ContainsFunc(denied.Holders, mine) {
		return locks.Lease{}, errMoved
	}
	r.Wait = grace
	return d.table.Acquire(ctx, r)
}

// announce records the event of a question, so that the holder receives it, and reports whether it did. If the lock has ended, it
// does nothing: no consent is needed, unless somebody else has the lock now.
func (d *Desk) announce(ctx context.Context, q question) (bool, error) {
	result, err := d.store.Commit(ctx, kv.Txn{If: []kv.Cond{kv.Holds(prefix+q.document, q.ask.encode()), q.held.Stands()}, Then: d.record(q.document, q.ask, "")})
	return result.Held, err
}

// moved returns errMoved if the lock of an open question ended and another client got it before the asker was in the queue: that
// client does not know the question.
func (d *Desk) moved(ctx context.Context, r locks.Request, q question) error {
	now, _, err := d.table.At(ctx, r.Paths[0])
	if err != nil || now.Token == 0 || now.Token == q.held.Token || now.Holder.ID == r.Holder.ID {
		return err
	}
	e, _, err := d.store.Get(ctx, prefix+q.document)
	if err != nil {
		return err
	}
	if a, ok := decode(e); ok && a.ID == q.ask.ID {
		return errMoved
	}
	return nil // the other client has been asked by somebody else
}
