// Package wait contains small waits for all packages. None outlives its context.
package wait

import (
	"context"
	"sync"
	"time"
)

// For returns nil after the time d, or ctx's cause if ctx ends first.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// Group returns nil when the group is done, or ctx's cause if ctx ends first. It leaves a goroutine behind if the
// group is never done.
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

// Closed reports whether a channel is closed. Nothing may be sent on the channel.
func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
