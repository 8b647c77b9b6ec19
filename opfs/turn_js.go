//go:build js && wasm

package opfs

import "context"

// turn is held by one goroutine at a time. Its capacity is 1, and waiting goroutines are served in order of arrival.
type turn chan struct{}

// take waits for the turn; give ends it.
func (t turn) take(ctx context.Context) bool {
	select {
	case t <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (t turn) give() { <-t }
