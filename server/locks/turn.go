package locks

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// turn lets one goroutine at a time ask the store for a lease that all share. In contrast to a mutex, the wait for it ends with a context: a
// store that does not answer would make each request wait for the limits of all requests before it.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take fails with [kv.ErrUnavailable] and the cause when ctx ends.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", kv.ErrUnavailable, context.Cause(ctx))
	}
}

func (t turn) leave() { <-t }
