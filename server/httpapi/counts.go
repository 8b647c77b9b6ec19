package httpapi

import (
	"net/http"
	"sync"
)

// counts are how many things of each client address the server has at the moment.
type counts struct {
	mu sync.Mutex
	of map[string]int
}

// begin counts a thing until end is called. It is not ok if the address has as many as the limit; a limit of 0 is none.
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

var errTooManySockets = &apiError{http.StatusTooManyRequests, "too_many_sockets", "Your network has as many sockets open as it may."}

// CountSockets returns a handler of sockets that refuses those above the limit of their address. Sockets of events count too.
func (a *API) CountSockets(sockets http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		end, ok := a.open.begin(a.network(r), a.MaxSockets)
		if !ok {
			a.fail(w, r, errTooManySockets)
			return
		}
		defer end()
		sockets.ServeHTTP(w, r)
	})
}
