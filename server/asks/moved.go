package asks

import (
	"context"
	"errors"
	"slices"
	"time"

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
