package lock

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
)

// Record is what others may know of a lease.
type Record struct {
	Resource   string
	LeaseID    string
	OwnerID    string
	OwnerName  string
	Token      int64
	AcquiredAt time.Time
	ExpiresAt  time.Time
	TTL        time.Duration // of each renewal; 0 where it is not known
}

// Records keep the record of each lease where others can read it, and hand out
// fencing tokens. They do not decide who holds: the [Locker] does.
//
// Each call is atomic towards every other one on the same resource.
type Records interface {
	// Claim writes r under a token greater than that of every record the resource
	// ever had, and greater than r.Token, and returns the token. Stolen says that the
	// holder before may still believe in its lease.
	Claim(ctx context.Context, r Record, stolen bool) (token int64, err error)
	// Renew writes r again. It fails with an error that matches ErrLost where the
	// present record bears another lease's id or there is none: a renewal that was
	// overtaken by its Remove must not bring the record back.
	Renew(ctx context.Context, r Record) error
	// Read returns the present record of the resource; ok is false where there is none.
	Read(ctx context.Context, resource string) (r Record, ok bool, err error)
	// Remove removes the record of r.LeaseID; that of another lease stays.
	Remove(ctx context.Context, r Record) error
}

const (
	// clockTick is the resolution of the wall clock in browsers.
	clockTick = time.Millisecond
	// maxTick is the coarsest clock that is waited for.
	maxTick = 200 * time.Millisecond
)

// WallTokens are Records that write nothing: tokens are milliseconds of wall time.
//
// Tokens rise from grant to grant because a claim lasts until the clock is past its
// token, and the claimer holds the lock meanwhile; a stolen claim also begins with a
// new tick. Shared leases that are claimed at the same time have tokens ahead of the
// clock, and wait for it too. A clock may tick coarsely, as that of a browser does that
// guards against fingerprinting, but not more so than [maxTick]. Tokens do not rise
// between processes across a wall clock that is set back.
type WallTokens struct {
	Clock Clock
	late  bool // the claimer's lock is not released before the time has passed: see ripe

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
	case again: // a token of this owner already: one that is not ripe must not be ahead of the clock
		if err := w.pass(ctx, now); err != nil {
			return 0, err
		}
		return w.Claim(ctx, r, false)
	case w.late:
		return token, nil
	}
	return token, w.pass(ctx, token)
}

// ripe is a grant whose release waits until the clock shows another time than the token of
// its lease: mostly that has passed long since.
type ripe struct {
	Grant
	tokens *WallTokens
	token  int64
}

// Release implements [Grant].
func (r *ripe) Release(ctx context.Context) error {
	if now := r.tokens.now(); now <= r.token && r.token-now < maxTick.Milliseconds() {
		_ = r.tokens.pass(ctx, r.token)
	}
	return r.Grant.Release(ctx)
}

func (w *WallTokens) now() int64 { return w.Clock.Now().Wall.UnixMilli() }

// pass returns when the clock is past the token, or was set back so far that waiting
// for it is of no use.
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
func (w *WallTokens) reach(ctx context.Context, token int64) {
	if now := w.now(); now < token && token-now <= maxTick.Milliseconds() {
		_ = w.pass(ctx, token-1)
	}
}

// Renew does nothing.
func (w *WallTokens) Renew(context.Context, Record) error { return nil }

// Read finds nothing.
func (w *WallTokens) Read(context.Context, string) (Record, bool, error) { return Record{}, false, nil }

// Remove does nothing.
func (w *WallTokens) Remove(context.Context, Record) error { return nil }
