package lock

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/wait"
)

// Both returns a Locker that holds each name in two Lockers. Its clients exclude those of each Locker alone.
//
// Every request goes to first, then to second, and the release goes in the opposite order. While a client holds a name
// in first, no other client of Both blocks it in second. The order of first is therefore the order of Both, and no
// cycle can arise between the two. A grant is lost when either part is lost.
//
// A denial of first matches ErrFallbackConflict too, as a denial of second does.
func Both(first, second Locker) Locker { return &both{first, second} }

type both struct{ first, second Locker }

// Request implements [Locker].
func (b *both) Request(ctx context.Context, r Request) (Grant, error) {
	begun := SystemClock{}.Now()
	g, err := b.first.Request(ctx, r)
	switch {
	case err == nil && r.Steal:
		return b.steal(ctx, r, begun, g)
	case err == nil:
		return b.complete(ctx, r, g)
	case errors.Is(err, ErrDenied) && !errors.Is(err, ErrFallbackConflict):
		return nil, &Error{Code: CodeFallbackConflict, Operation: OpAcquire, Err: err, Detail: "another page of this browser holds it"}
	}
	return nil, err
}

// steal completes a grant that was stolen from first and requested at begun. It steals in second only from the clients that held the names
// there while g was still valid: this page may freeze at any moment, and a successor may hold both Lockers when it wakes.
func (b *both) steal(ctx context.Context, r Request, begun Instant, g Grant) (h Grant, err error) {
	for range lastLooks {
		r.From = b.holders(ctx, r.Wants)
		if b.stolenSince(ctx, begun, g) {
			return newBundle(g), nil // another client stole g, and may have the lock of the second Locker already
		}
		if h, err = b.complete(ctx, r, g); !errors.Is(err, ErrDenied) {
			return h, err
		}
		begun = Instant{} // another client holds it now: look again
	}
	_ = g.Release(context.WithoutCancel(ctx))
	return nil, err
}

// holders returns the clients that hold one of the names in second; none if that cannot be known, so that nothing is stolen.
func (b *both) holders(ctx context.Context, wants []Want) []string {
	now, _ := bounded(ctx, answerLimit, b.second.Query)
	clients := make([]string, 0, len(now.Held))
	for _, i := range now.Held {
		if slices.ContainsFunc(wants, func(w Want) bool { return w.Name == i.Name }) {
			clients = append(clients, i.ClientID)
		}
	}
	return clients
}

// complete adds the names in second to a grant of first. It releases that grant if it fails, unless a steal was denied.
func (b *both) complete(ctx context.Context, r Request, g Grant) (Grant, error) {
	waiting, stop := untilLost(ctx, g)
	defer stop()
	h, err := b.second.Request(waiting, r)
	switch {
	case err == nil:
		return newBundle(g, h), nil
	case ctx.Err() == nil && wait.Closed(g.Lost()):
		return newBundle(g), nil // granted, and stolen before the second Locker answered
	case r.Steal && errors.Is(err, ErrDenied):
		return nil, err
	}
	_ = g.Release(context.WithoutCancel(ctx))
	return nil, err
}

// stolenSince reports whether a grant that was requested at begun is lost. An answer that took long may have come after a sleep of this
// page, and before the message that the lock was stolen meanwhile. That message comes before the answer to a later query.
func (b *both) stolenSince(ctx context.Context, begun Instant, g Grant) bool {
	for range lastLooks {
		now := SystemClock{}.Now()
		if now.Since(begun) < promptly {
			break
		}
		begun = now
		_, _ = b.first.Query(ctx)
	}
	return wait.Closed(g.Lost())
}

// untilLost returns a context that ends when the grant is lost.
func untilLost(ctx context.Context, g Grant) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	go func() {
		select {
		case <-g.Lost():
			stop()
		case <-ctx.Done():
		}
	}()
	return ctx, stop
}

// Query implements [Locker]. A lock that is in both Lockers appears once, as first reports it.
func (b *both) Query(ctx context.Context) (Snapshot, error) {
	s, err := b.first.Query(ctx)
	if err != nil {
		return s, err
	}
	alone, err := b.second.Query(ctx)
	if err != nil {
		return s, err
	}
	// A client of Both that waits in second already holds in first.
	known := slices.Concat(s.Held, s.Pending)
	s.Held = append(s.Held, unknown(&known, alone.Held)...)
	s.Pending = append(s.Pending, unknown(&known, alone.Pending)...)
	return s, nil
}

// unknown returns the infos that are not in known, and removes the others from known.
func unknown(known *[]Info, infos []Info) (others []Info) {
	for _, i := range infos {
		before := len(*known)
		if *known = without(*known, []Want{{i.Name, i.Mode}}); len(*known) == before {
			others = append(others, i)
		}
	}
	return others
}
