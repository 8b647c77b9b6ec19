package locks

import (
	"context"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// mayHaveMore returns an error when the holder of a ticket has as much as one may.
func (t *Table) mayHaveMore(ctx context.Context, own *ticket, waits bool) error {
	t.mirror.mu.Lock()
	held, waiting := t.mirror.graph.Count(own.Holder)
	t.mirror.mu.Unlock()
	c := t.config
	if c.MaxHeld > 0 && held >= c.MaxHeld || waits && c.MaxWaiting > 0 && waiting >= c.MaxWaiting {
		return ErrTooMany
	}
	if !own.named() || !t.remembersMuch(own.Holder) {
		return nil
	}
	// A ticket that the store remembers already costs nothing more.
	result, err := t.store.Commit(ctx, kv.Txn{Then: []kv.Op{kv.Read(own.stub), kv.Read(own.gone())}})
	if err == nil && len(result.Reads[0])+len(result.Reads[1]) == 0 {
		err = ErrTooManyTickets
	}
	return err
}

// remembersMuch reports whether the store remembers as many tickets of a holder as it may.
func (t *Table) remembersMuch(holder string) bool {
	t.mirror.mu.Lock()
	defer t.mirror.mu.Unlock()
	return t.config.MaxTickets > 0 && t.mirror.kept[holder] >= t.config.MaxTickets
}

// mayForbid returns an error when giving up a ticket that has no place in line would only add to the tickets of the holder that the
// store remembers. A lease that was granted under the ticket is given back in any case.
func (t *Table) mayForbid(ctx context.Context, own *ticket) error {
	if !t.remembersMuch(own.Holder) {
		return nil
	}
	if err := t.hearAll(ctx); err != nil {
		return err
	}
	t.mirror.mu.Lock()
	defer t.mirror.mu.Unlock()
	if t.mirror.asked[askedKey(own.claim)] == nil {
		return ErrTooManyTickets
	}
	return nil
}
