package httpapi

import (
	"bufio"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/server/sessions"
)

const (
	// requestBytes: this many received bytes count as one request. Frames without content cost about that much.
	requestBytes = 512
	// receiveAgain is the pause before a socket tries again whether it may receive more.
	receiveAgain = 200 * time.Millisecond
)

// paced limits the bytes that the sockets of one address receive. Pings and unfinished messages are never counted as messages. A socket is
// read more slowly when its address exceeds the limit.
type paced struct {
	http.ResponseWriter
	limit   *sessions.Limiter
	address string
}

func (a *API) paced(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	return &paced{w, a.received, a.network(r)}
}

// Hijack gives the connection to the WebSocket.
func (p *paced) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffers, err := http.NewResponseController(p.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	return &pacedConn{Conn: conn, limit: p.limit, address: p.address, closed: make(chan struct{})}, buffers, nil
}

// pacedConn is the connection of a socket. One goroutine at a time reads.
type pacedConn struct {
	net.Conn
	limit   *sessions.Limiter
	address string
	unpaid  int // bytes
	closed  chan struct{}
	once    sync.Once
}

// Read receives bytes, and waits afterwards while the address may not receive more.
func (c *pacedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	for c.unpaid += n; c.unpaid >= requestBytes; c.unpaid -= requestBytes {
		for !c.allowed() {
			select {
			case <-time.After(receiveAgain):
			case <-c.closed:
				return n, net.ErrClosed
			}
		}
	}
	return n, err
}

func (c *pacedConn) allowed() bool {
	_, ok := c.limit.Allow(c.address, time.Now())
	return ok
}

// Close closes the connection.
func (c *pacedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
