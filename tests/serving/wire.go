package serving

import (
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A Wire forwards its own TCP port to an address. A test can cut it.
type Wire struct {
	listener    net.Listener
	network, to string

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]struct{}
}

// NewWire listens and forwards connections to an address until the test ends. network is "tcp" or "unix".
func NewWire(t *testing.T, network, to string) *Wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := &Wire{listener: l, network: network, to: to, conns: map[net.Conn]struct{}{}}
	t.Cleanup(func() { _ = l.Close(); w.Cut(true) })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go w.pass(conn)
		}
	}()
	return w
}

// Address returns the wire's own address.
func (w *Wire) Address() string { return w.listener.Addr().String() }

func (w *Wire) pass(conn net.Conn) {
	defer conn.Close()
	far, err := net.Dial(w.network, w.to)
	if err != nil {
		return
	}
	defer far.Close()
	w.mu.Lock()
	if w.cut {
		w.mu.Unlock()
		return
	}
	w.conns[conn] = struct{}{}
	w.mu.Unlock()
	go func() { _, _ = io.Copy(far, conn); _ = far.Close() }()
	_, _ = io.Copy(conn, far)
	w.mu.Lock()
	delete(w.conns, conn)
	w.mu.Unlock()
}

// Cut ends every connection and accepts no new one, or accepts connections again.
func (w *Wire) Cut(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	if cut {
		for conn := range w.conns {
			_ = conn.Close()
		}
	}
}

// Proxy forwards requests to a server over the wire. If the wire is cut or nobody listens, it cuts the page's
// connection too.
func (w *Wire) Proxy() http.Handler {
	p := Forward(w.Address())
	p.Transport = &http.Transport{DialContext: (&net.Dialer{}).DialContext}
	p.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	return p
}

// Forward passes requests to an address, under the host that the client named.
func Forward(address string) *httputil.ReverseProxy {
	to := &url.URL{Scheme: "http", Host: address}
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host
	}}
}
