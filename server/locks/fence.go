package locks

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// ErrStaleToken means that the lock with this token has ended.
var ErrStaleToken = errors.New("the lock of this token has ended")

// Fence returns the condition that the holder's exclusive lock on a path with this token still exists. A write that
// commits under this condition precedes everything that a later holder does.
//
// Fence fails with [ErrStaleToken] if that lock has already ended, and with [ErrNotHolder] if it never belonged to
// this holder, as far as the store remembers.
func (t *Table) Fence(ctx context.Context, p Path, holder string, token int64) (kv.Cond, error) {
	key := node(claimPrefix, p) + exclusiveMark
	s, err := t.readOwn(ctx, key, holder)
	switch {
	case err == nil && s.token == token:
		return kv.CreatedAt(key, token), nil
	case err == nil:
		err = ErrStaleToken
	case !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrNotHolder):
		return kv.Cond{}, err
	default:
		err = t.blame(ctx, key, holder, token, s.token)
	}
	if errors.Is(err, ErrStaleToken) || errors.Is(err, ErrNotHolder) {
		t.config.Metrics.FenceRejections.Inc()
	}
	return kv.Cond{}, err
}

// Own returns the condition that the holder has the exclusive lock on a path, and the lock's token. If token is not
// 0, the lock must have it. The errors are those of [Table.RenewAt].
func (t *Table) Own(ctx context.Context, p Path, holder string, token int64) (kv.Cond, int64, error) {
	s, err := t.holderAt(ctx, p, holder, token)
	return kv.CreatedAt(s.key, s.token), s.token, err
}

// FenceOf returns the condition that a lease still exists. It fails with [ErrStaleToken] if the lease has ended. In
// contrast to [Table.Fence] the lease may be on a place above the one that is written, or have a slot.
func (t *Table) FenceOf(ctx context.Context, l Lease) (kv.Cond, error) {
	s, err := t.byID(ctx, l.ID, l.Holder.ID)
	if errors.Is(err, ErrNotFound) || err == nil && s.token != l.Token {
		t.config.Metrics.FenceRejections.Inc()
		return kv.Cond{}, ErrStaleToken
	}
	return kv.CreatedAt(s.key, s.token), err
}

// Free returns the condition that nobody has a lease on a path itself. There may be leases below it.
func Free(p Path) kv.Cond { return kv.NoneUnder(node(claimPrefix, p) + anyMark) }

// NotEnded returns the condition that the lease has not ended.
func (l Lease) NotEnded() kv.Cond {
	_, home, _ := parseID(l.ID)
	return kv.CreatedAt(home, l.Token)
}

// blame distinguishes a former holder from an owner that never held the lock. present is the token of the existing
// lock, or 0.
func (t *Table) blame(ctx context.Context, key, holder string, token, present int64) error {
	if token <= 0 || token == present {
		return ErrNotHolder
	}
	e, err := t.store.GetAt(ctx, key, token)
	switch {
	case errors.Is(err, kv.ErrCompacted):
		return ErrStaleToken // too long ago to know its holder
	case errors.Is(err, kv.ErrUnavailable):
		return err
	case err != nil: // a future revision
		return ErrNotHolder
	}
	if c, ok := decodeClaim(e); ok && e.Created == token && c.Holder == holder {
		return ErrStaleToken
	}
	return ErrNotHolder
}
