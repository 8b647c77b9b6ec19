package locks

import (
	"context"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// mayHaveMore returns an error if the holder of a ticket, or its user, has reached a limit.
func (t *Table) mayHaveMore(ctx context.Context, own *ticket, r Request) error {
	t.mirror.mu.Lock()
	held, waiting := t.mirror.graph.Count(own.Holder)
	ofUser := t.mirror.users[r.User]
	if mine := t.mirror.homes[own.keys()[0]]; mine != nil && mine.Holder == own.Holder {
		ofUser, held = 0, 0 // the request repeats or replaces this lease
	}
	t.mirror.mu.Unlock()
	if r.User != "" && r.UserLocks > 0 && ofUser >= r.UserLocks {
		return ErrTooManyOfUser
	}
	c := t.config
	if c.MaxHeld > 0 && held >= c.MaxHeld || r.Wait > 0 && c.MaxWaiting > 0 && waiting >= c.MaxWaiting {
		return ErrTooMany
	}
	if !own.named() || !t.remembersMuch(own.Holder) {
		return nil
	}
	// A ticket that the store remembers already adds nothing.
	result, err := t.store.Commit(ctx, kv.Txn{Then: []kv.Op{kv.Read(own.stub), kv.Read(own.gone())}})
	if err == nil && len(result.Reads[0])+len(result.Reads[1]) == 0 {
		err = ErrTooManyTickets
	}
	return err
}

// remembersMuch reports whether the store remembers the maximum number of tickets of a holder.
func (t *Table) remembersMuch(holder string) bool {
	t.mirror.mu.Lock()
	defer t.mirror.mu.Unlock()
	return t.config.MaxTickets > 0 && t.mirror.kept[holder] >= t.config.MaxTickets
}

// mayForbid returns an error if giving up a ticket without a place in the queue would only add to the holder's
// remembered tickets. A lease that was granted under the ticket is released in any case.
func (t *Table) mayForbid(ctx context.Context, own *ticket) error {
	if !t.remembersMuch(own.Holder) {
		return nil
	}
	if err := t.hearAll(ctx); err != nil {
		return err
	}
	t.mirror.mu.Lock()
	defer t.mirror.mu.Unlock()
	if len(t.mirror.asked[askedKey(own.claim)]) == 0 {
		return ErrTooManyTickets
	}
	return nil
}
