// Package wait has the small waits that all rooms need. None outlives its context.
package wait

import (
	"context"
	"sync"
	"time"
)

// For returns nil when the time has passed, or the cause where ctx has ended by then.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// Group returns nil when the group is done, or the cause where ctx ends first. A group that is never done keeps a
// goroutine.
func Group(ctx context.Context, group *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Closed reports whether a channel on which nothing is sent has been closed.
func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
