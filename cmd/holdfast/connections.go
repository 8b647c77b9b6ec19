package main

import (
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/server/httpapi"
)

// filesOfStore is how many open files the store and the rest of the server need besides those of connections.
const filesOfStore = 128

// metricsConnections is how many connections the separate address of the metrics accepts.
const metricsConnections = 32

// limitedListener is a listener that closes the connections above a limit. Connections are open files, and the store ends if it cannot open
// another one. One address has at most three quarters of the connections, so that others can connect. A trusted proxy may have all.
type limitedListener struct {
	*net.TCPListener
	most    int // connections
	advice  string
	proxies httpapi.Proxies
	log     *slog.Logger

	mu     sync.Mutex
	open   int
	of     map[string]int // by network
	warned time.Time
}

// limitConnections limits the connections that l accepts. files is the number of files that the process may have open; 0 means no limit. A request
// may open a file of its own, so half of the files are for connections.
func limitConnections(l net.Listener, files int, proxies httpapi.Proxies, log *slog.Logger) net.Listener {
	if files == 0 {
		return l
	}
	return &limitedListener{
		TCPListener: l.(*net.TCPListener), most: max((files-filesOfStore)/2, files/4), advice: "; raise ulimit -n, or name the proxy with --trusted-proxy",
		proxies: proxies, log: log, of: map[string]int{},
	}
}

// limitMetrics limits the connections to the separate address of the metrics.
func limitMetrics(l net.Listener, log *slog.Logger) net.Listener {
	return &limitedListener{
		TCPListener: l.(*net.TCPListener), most: metricsConnections, advice: " at the address of the metrics", log: log, of: map[string]int{},
	}
}

// Accept returns the next connection within the limits.
func (c *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := c.AcceptTCP()
		if err != nil {
			return nil, err
		}
		host, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
		if from := httpapi.Network(host); c.begin(from, c.proxies.Trusts(host)) {
			return &limitedConn{TCPConn: conn, end: sync.OnceFunc(func() { c.end(from) })}, nil
		}
		_ = conn.Close()
	}
}

func (c *limitedListener) begin(from string, trusted bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open >= c.most || !trusted && c.of[from] >= c.most-c.most/4 {
		if now := time.Now(); now.Sub(c.warned) > time.Minute {
			c.warned = now
			c.log.Warn("a new connection was closed: too many are open"+c.advice,
				"open", c.open, "address", from, "of_address", c.of[from])
		}
		return false
	}
	c.open++
	c.of[from]++
	return true
}

func (c *limitedListener) end(from string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if c.of[from]--; c.of[from] == 0 {
		delete(c.of, from)
	}
}

// limitedConn is a connection that its listener counts until Close.
type limitedConn struct {
	*net.TCPConn
	end func()
}

// Close closes the connection.
func (c *limitedConn) Close() error {
	defer c.end()
	return c.TCPConn.Close()
}
