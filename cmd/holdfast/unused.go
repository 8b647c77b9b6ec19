package main

import (
	"net"
	"net/http"
	"sync"
)

// unused are the connections on which nothing has been asked yet. Browsers open some in advance, and a graceful stop of
// http.Server waits for a request on each, for five seconds.
type unused struct {
	mu      sync.Mutex
	conns   map[net.Conn]struct{}
	closing bool
}

// note is the ConnState of a server.
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

// close closes them, and those that come later.
func (u *unused) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closing = true
	for conn := range u.conns {
		_ = conn.Close()
	}
}
