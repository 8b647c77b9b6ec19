package lock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
)

// claimLimit is how long a lease waits for its record, but no longer than half its TTL: the lease only needs the token.
const claimLimit = 3 * time.Second

// maxLead is how far a token of the best Records may be ahead of the clock when its Claim returns. Records count on if
// there is more than one grant in a millisecond. The fallback Records know only the clock, and let the same time pass.
const maxLead = 2 * time.Millisecond

// NearClock returns Records whose tokens are at most two milliseconds ahead of the clock when their Claim returns, unless the clock is coarse. The
// clients of a file need them if other clients use [WithFallback] beside them.
func NearClock(r Records, clock *WallTokens) Records { return nearClock{r, clock} }

type nearClock struct {
	Records
	clock *WallTokens
}

// Claim implements [Records].
func (n nearClock) Claim(ctx context.Context, r Record, stolen bool) (int64, error) {
	token, err := n.Records.Claim(ctx, r, stolen)
	if err == nil {
		err = n.clock.reach(ctx, token-maxLead.Milliseconds())
	}
	return token, err
}

// WithFallback returns Records for leases whose lock does not depend on them. They use best. They use fallback for a lease whose Claim fails in
// best, or takes longer than three seconds or half its TTL. A failure with ErrDenied alone is returned instead. A lease of fallback has no
// record. warn, unless nil, is called with the reason for it, and must not block. Tokens rise from lease to lease, whichever of the two they
// come from: those of best are not far ahead of the clock, and those of fallback begin behind them.
func WithFallback(best Records, fallback *WallTokens, warn func(error)) Records {
	return &fallbackRecords{best: NearClock(best, fallback), fallback: fallback, warn: warn, leases: make(map[string]bool)}
}

type fallbackRecords struct {
	best     Records
	fallback *WallTokens
	warn     func(error)

	mu     sync.Mutex
	leases map[string]bool // the leases that the fallback serves
}

// Claim implements [Records].
func (s *fallbackRecords) Claim(ctx context.Context, r Record, stolen bool) (int64, error) {
	limited, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go s.limit(limited, stop, min(claimLimit, r.ExpiresAt.Sub(r.AcquiredAt)/2)/2)
	token, err := s.best.Claim(limited, r, stolen)
	if err == nil || ctx.Err() != nil || errors.Is(err, ErrDenied) && !errors.Is(err, ErrFallbackConflict) {
		return token, err
	}
	if s.warn != nil {
		s.warn(err)
	}
	s.mu.Lock()
	s.leases[r.LeaseID] = true
	s.mu.Unlock()
	if err := s.fallback.pass(ctx, s.fallback.now()+maxLead.Milliseconds()); err != nil {
		return 0, err
	}
	return s.fallback.Claim(ctx, r, stolen)
}

// limit ends a claim after two halves of its limit. After a freeze, the first half is over at once, and the claim has the
// second one to end: the records of a page that was frozen are not unreadable.
func (s *fallbackRecords) limit(ctx context.Context, end context.CancelCauseFunc, half time.Duration) {
	for passed := time.Duration(0); passed < 2*half; {
		begun := s.fallback.Clock.Now()
		if wait.For(ctx, half) != nil {
			return
		}
		passed += min(half, s.fallback.Clock.Now().Since(begun))
	}
	end(errNoAnswer)
}

// Renew implements [Records].
func (s *fallbackRecords) Renew(ctx context.Context, r Record) error {
	if s.serves(r) {
		return s.fallback.Renew(ctx, r)
	}
	return s.best.Renew(ctx, r)
}

// Read implements [Records].
func (s *fallbackRecords) Read(ctx context.Context, resource string) (Record, bool, error) {
	return s.best.Read(ctx, resource)
}

// Remove implements [Records].
func (s *fallbackRecords) Remove(ctx context.Context, r Record) error {
	if !s.serves(r) {
		return s.best.Remove(ctx, r)
	}
	s.mu.Lock()
	delete(s.leases, r.LeaseID)
	s.mu.Unlock()
	// Nobody waits for a Claim that did not answer in time, and its effect is unknown.
	go func() {
		ctx, stop := context.WithTimeoutCause(context.WithoutCancel(ctx), claimLimit, errNoAnswer)
		defer stop()
		_ = s.best.Remove(ctx, r)
	}()
	return s.fallback.Remove(ctx, r)
}

func (s *fallbackRecords) serves(r Record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases[r.LeaseID]
}
