// Package sweeper ends the locks whose heartbeat has stopped. Every server sweeps: the transactions that end a lease
// agree among themselves which of them did it.
package sweeper

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast/server/locks"
)

// Table is a lock table to sweep, such as *[locks.Table].
type Table interface {
	// Due returns the leases that have expired, and the time of the next expiry, or zero.
	Due(now time.Time) ([]locks.Due, time.Time)
	// Changed receives when Due may have become different.
	Changed() <-chan struct{}
	// Expire ends a lease unless it was extended meanwhile.
	Expire(context.Context, locks.Due) (bool, error)
}

const (
	// parallel is the number of leases that are ended at once: after a long stop of all servers, all leases are due together.
	parallel = 64
	// again is the pause before the next attempt after a failed sweep.
	again = 50 * time.Millisecond
)

// Run sweeps until ctx ends: each lease when its time is up, and everything once in every interval, as a backstop.
func Run(ctx context.Context, table Table, interval time.Duration, log *slog.Logger) {
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for {
		due, next := table.Due(time.Now())
		wait := interval
		if !next.IsZero() {
			wait = min(wait, time.Until(next))
		}
		if !sweep(ctx, table, due, log) {
			wait = min(wait, again)
		}
		timer.Reset(max(wait, time.Millisecond))
		select {
		case <-timer.C:
		case <-table.Changed():
		case <-ctx.Done():
			return
		}
	}
}

// sweep reports whether everything due has been ended.
func sweep(ctx context.Context, table Table, due []locks.Due, log *slog.Logger) bool {
	var group errgroup.Group
	group.SetLimit(parallel)
	clean := true
	for _, d := range due {
		group.Go(func() error {
			_, err := table.Expire(ctx, d)
			return err
		})
	}
	if err := group.Wait(); err != nil && ctx.Err() == nil {
		log.Warn("an expired lock could not be ended; the server tries again", "error", err)
		clean = false
	}
	return clean
}
