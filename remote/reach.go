package remote

import (
	"context"
	"errors"
	"sync"
)

// reach sends to a server, and knows whether it answers.
type reach struct {
	server Server

	mu       sync.Mutex
	away     bool
	last     int64 // of the watchers
	watchers map[int64]func()
}

// Send implements [Server]. A request that its caller gave up says nothing about the server, unless the caller has waited in
// vain for as long as an answer may take.
func (r *reach) Send(ctx context.Context, request Request) (Reply, error) {
	reply, err := r.server.Send(ctx, request)
	if ctx.Err() == nil || errors.Is(context.Cause(ctx), errSilent) || err == nil {
		r.note(err != nil || absent(reply))
	}
	return reply, err
}

// Listen implements [Server].
func (r *reach) Listen(ctx context.Context, path string, handle func(Notice)) error {
	return r.server.Listen(ctx, path, handle)
}

// absent reports an answer that says that the server cannot answer: its own where its store is away, or that of a proxy.
func absent(r Reply) bool {
	return r.Status == statusBadGateway || r.Status == statusUnavailable || r.Status == statusGatewayTimeout
}

func (r *reach) note(away bool) {
	r.mu.Lock()
	var told []func()
	if r.away != away {
		for _, changed := range r.watchers {
			told = append(told, changed)
		}
	}
	r.away = away
	r.mu.Unlock()
	for _, changed := range told {
		changed()
	}
}

// online reports whether the last request was answered.
func (r *reach) online() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.away
}

// watch calls changed after each change of online, until stop is called.
func (r *reach) watch(changed func()) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watchers == nil {
		r.watchers = make(map[int64]func())
	}
	r.last++
	id := r.last
	r.watchers[id] = changed
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, id)
	}
}
