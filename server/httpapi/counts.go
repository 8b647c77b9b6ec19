package httpapi

import (
	"context"
	"net/http"
	"sync"
)

// counts counts what is open for each client address, such as sockets.
type counts struct {
	mu sync.Mutex
	of map[string]int
}

// begin counts one more until the caller calls end. It returns ok = false if the address has reached the limit. A limit of 0 means
// no limit.
func (c *counts) begin(address string, limit int) (end func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if limit > 0 && c.of[address] >= limit {
		return nil, false
	}
	if c.of == nil {
		c.of = make(map[string]int)
	}
	c.of[address]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.of[address]--; c.of[address] == 0 {
			delete(c.of, address)
		}
	}, true
}

// turns lets a limited number of requests of each client address do something at once. The others wait.
type turns struct {
	mu sync.Mutex
	of map[string]*turn
}

type turn struct {
	taken chan struct{}
	users int // those that wait, too
}

// take waits for a turn, which lasts until the caller calls leave. It returns ok = false if ctx ends first.
func (t *turns) take(ctx context.Context, address string, limit int) (leave func(), ok bool) {
	t.mu.Lock()
	if t.of == nil {
		t.of = make(map[string]*turn)
	}
	own := t.of[address]
	if own == nil {
		own = &turn{taken: make(chan struct{}, limit)}
		t.of[address] = own
	}
	own.users++
	t.mu.Unlock()
	forget := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(t.of, address)
		}
	}
	select {
	case own.taken <- struct{}{}:
		return func() { <-own.taken; forget() }, true
	case <-ctx.Done():
		forget()
		return nil, false
	}
}

var errTooManySockets = &apiError{http.StatusTooManyRequests, "too_many_sockets", "Your network has as many sockets open as it may."}

// CountSockets returns a handler that refuses a socket if its address has reached the limit. Sockets of events count too.
func (a *API) CountSockets(sockets http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		end, ok := a.open.begin(a.network(r), a.MaxSockets)
		if !ok {
			a.fail(w, r, errTooManySockets)
			return
		}
		defer end()
		sockets.ServeHTTP(a.paced(w, r), r)
	})
}

// LimitConcurrency returns a handler that refuses a request if turnsAtOnce others of its address are being answered.
func (a *API) LimitConcurrency(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		end, ok := a.scrapes.begin(a.network(r), turnsAtOnce)
		if !ok {
			a.fail(w, r, &rateError{1})
			return
		}
		defer end()
		handler.ServeHTTP(w, r)
	})
}
