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
func (relay *Relay) acquire(ctx context.Context, r locks.Request, grace time.Duration) (locks.Lease, error) {
	r.Wait = 0
	lease, err := relay.table.Acquire(ctx, r)
	var denied *locks.DeniedError
	if !errors.As(err, &denied) {
		return lease, err
	}
	mine := func(l locks.Lease) bool { return l.Holder.ID == r.Holder.ID }
	if grace > 0 && len(denied.Holders) > 0 && !slices.ContainsFunc(denied.Holders, mine) {
		return locks.Lease{}, errMoved
	}
	r.Wait = grace
	return relay.table.Acquire(ctx, r)
}

// announce records the events of the questions, so that the holders receive them. It does nothing for a lock that has ended: no consent is
// needed. It fails with errMoved, before anybody receives a question, if another client got a lock before the asker was in the queue.
func (relay *Relay) announce(ctx context.Context, r locks.Request, in *inquiry) error {
	if err := relay.moved(ctx, r, in); err != nil {
		return err
	}
	for _, q := range in.questions {
		txn := kv.Txn{If: []kv.Cond{kv.Holds(prefix+q.document, q.ask.encode()), q.held.NotEnded()}, Then: relay.record(q.document, q.ask, "")}
		if _, err := relay.store.Commit(ctx, txn); err != nil {
			return err
		}
	}
	return nil
}

// moved returns errMoved if another client got a lock after the questions were stored and before the asker was in the queue: that client does
// not know the question.
func (relay *Relay) moved(ctx context.Context, r locks.Request, in *inquiry) error {
	blocking, _, err := relay.table.Blocking(ctx, r.Paths[0])
	if err != nil {
		return err
	}
	for _, now := range blocking {
		if in.known[now.ID] || now.Holder.ID == r.Holder.ID {
			continue
		}
		q := in.about(documentOf(now, r))
		if q == nil {
			return errMoved
		}
		e, _, err := relay.store.Get(ctx, prefix+q.document)
		if err != nil {
			return err
		}
		if a, ok := decode(e); ok && a.ID == q.ask.ID {
			return errMoved
		} // otherwise the other client has been asked by somebody else
	}
	return nil
}
