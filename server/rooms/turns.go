package rooms

import (
	"context"
	"sync"
)

// turns lets those who name the same key go one after the other. The zero value is ready.
type turns struct {
	mu    sync.Mutex
	queue map[string]*turn
}

type turn struct {
	free  chan struct{} // holds one item while nobody has the turn
	users int           // who has it or waits for it
}

// take waits for the turn of a key. The function it returns gives it back.
func (t *turns) take(ctx context.Context, key string) (done func(), err error) {
	t.mu.Lock()
	if t.queue == nil {
		t.queue = map[string]*turn{}
	}
	own := t.queue[key]
	if own == nil {
		own = &turn{free: make(chan struct{}, 1)}
		own.free <- struct{}{}
		t.queue[key] = own
	}
	own.users++
	t.mu.Unlock()

	select {
	case <-own.free:
		return func() { own.free <- struct{}{}; t.forget(key, own) }, nil
	case <-ctx.Done():
		t.forget(key, own)
		return nil, ctx.Err()
	}
}

func (t *turns) forget(key string, own *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(t.queue, key)
	}
}
