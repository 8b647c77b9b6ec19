package lock

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
)

// Record is the public part of a lease.
type Record struct {
	_          [0]func() // disallow ==, whose code would be in the Wasm
	Resource   string
	LeaseID    string
	OwnerID    string
	OwnerName  string
	Token      int64
	AcquiredAt time.Time
	ExpiresAt  time.Time
	TTL        time.Duration // of each renewal; 0 if it is not known
	Mode       Mode          // empty if it is not known
}

// Records keep the record of each lease in a place that others can read, and hand out fencing tokens. They do not
// decide which client holds: the [Locker] does.
//
// Each call is atomic with respect to every other one on the same resource.
type Records interface {
	// Claim writes r under a new token, and returns the token. It is greater than r.Token and than the token of every earlier record of
	// the resource, also of the same lease, from an earlier attempt. stolen says that the previous holder may still believe in its
	// lease. The error matches ErrDenied if another client, which the Locker did not know, holds the resource by its record.
	Claim(ctx context.Context, r Record, stolen bool) (token int64, err error)
	// Renew writes r again. The error matches ErrLost if the present record carries another lease's id, or if there is
	// no record: a renewal must not bring the record back that a Remove has just removed.
	Renew(ctx context.Context, r Record) error
	// Read returns the present record of the resource; ok is false if there is none.
	Read(ctx context.Context, resource string) (r Record, ok bool, err error)
	// Remove removes the record of r.LeaseID; the record of another lease stays.
	Remove(ctx context.Context, r Record) error
}

const (
	// clockTick is the resolution of the wall clock in browsers.
	clockTick = time.Millisecond
	// maxTick is the coarsest clock for which Claim waits.
	maxTick = 200 * time.Millisecond
)

// WallTokens are Records that write nothing: tokens are milliseconds of wall time.
//
// Tokens rise from grant to grant because a claim lasts until the clock is past its token, and the claiming client
// holds the lock meanwhile. A stolen claim also begins with a new tick. Shared leases that are claimed at the same time
// have tokens ahead of the clock, and wait for the clock too. A clock may tick coarsely, as the clock of a browser that
// guards against fingerprinting does, but not more coarsely than [maxTick]. Tokens do not rise between processes if the
// wall clock is set back in between.
type WallTokens struct {
	Clock Clock
	late  bool // the lock of the claiming client is not released before the time has passed: see delayedRelease

	mu   sync.Mutex
	last int64
}

// Claim returns the present wall time in milliseconds, once it has passed.
func (w *WallTokens) Claim(ctx context.Context, r Record, stolen bool) (int64, error) {
	if stolen {
		if err := w.pass(ctx, w.now()); err != nil {
			return 0, err
		}
	}
	w.mu.Lock()
	now := w.now()
	again := w.late && now <= w.last && w.last-now < maxTick.Milliseconds()
	if !again {
		w.last = max(w.last+1, r.Token+1, now)
	}
	token := w.last
	w.mu.Unlock()
	switch {
	case again: // the last token is of this millisecond: no token of a delayed release may be ahead of the clock
		if err := w.pass(ctx, now); err != nil {
			return 0, err
		}
		return w.Claim(ctx, r, false)
	case w.late:
		return token, nil
	}
	return token, w.pass(ctx, token)
}

// delayedRelease is a grant whose release waits until the millisecond of the last token is over, which may be the token of a lease nested in
// one with a record. Usually that was long ago.
type delayedRelease struct {
	Grant
	tokens *WallTokens
}

// Release implements [Grant].
func (r *delayedRelease) Release(ctx context.Context) error {
	r.tokens.mu.Lock()
	last := r.tokens.last
	r.tokens.mu.Unlock()
	if now := r.tokens.now(); now <= last && last-now < maxTick.Milliseconds() {
		_ = r.tokens.pass(ctx, last)
	}
	return r.Grant.Release(ctx)
}

func (w *WallTokens) now() int64 { return w.Clock.Now().Wall.UnixMilli() }

// pass returns when the clock is past the token, or was set back so far that waiting is useless.
func (w *WallTokens) pass(ctx context.Context, token int64) error {
	for range maxTick / clockTick {
		if err := wait.For(ctx, clockTick); err != nil {
			return err
		}
		if now := w.now(); now > token || token-now > maxTick.Milliseconds() {
			break
		}
	}
	return nil
}

// reach returns when the clock shows the time of a token that is a little ahead of it.
func (w *WallTokens) reach(ctx context.Context, token int64) error {
	if now := w.now(); now < token && token-now <= maxTick.Milliseconds() {
		return w.pass(ctx, token-1)
	}
	return nil
}

// Renew does nothing.
func (w *WallTokens) Renew(context.Context, Record) error { return nil }

// Read finds nothing.
func (w *WallTokens) Read(context.Context, string) (Record, bool, error) { return Record{}, false, nil }

// Remove does nothing.
func (w *WallTokens) Remove(context.Context, Record) error { return nil }
