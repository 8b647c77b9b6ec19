package main

import (
	"net"
	"net/http"
	"sync"
)

// unused are the connections without a request so far. Browsers open some connections in advance, and a graceful stop
// of http.Server waits five seconds for a request on each.
type unused struct {
	mu      sync.Mutex
	conns   map[net.Conn]struct{}
	closing bool
}

// note is the ConnState function of a server.
func (u *unused) note(conn net.Conn, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(u.conns, conn)
	case u.closing:
		_ = conn.Close()
	default:
		if u.conns == nil {
			u.conns = map[net.Conn]struct{}{}
		}
		u.conns[conn] = struct{}{}
	}
}

// close closes these connections, and those that are opened later.
func (u *unused) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closing = true
	for conn := range u.conns {
		_ = conn.Close()
	}
}
