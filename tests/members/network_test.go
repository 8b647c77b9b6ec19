package members

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/tests/serving"
)

// network passes what members say to each other. It knows from etcd's headers who speaks, so it can cut off one member
// in both directions.
type network struct {
	mu     sync.Mutex
	count  int
	places map[string]int // of identities of members
	away   int            // the place that is cut off; -1 is none
	calls  map[*call]struct{}
}

type call struct {
	from, to int
	end      context.CancelFunc
}

func newNetwork() *network {
	return &network{places: map[string]int{}, away: -1, calls: map[*call]struct{}{}}
}

// open returns a URL through which the other members reach the next place, at an address.
func (n *network) open(t *testing.T, address string) string {
	place := n.count
	n.count++
	to := forward(address)
	return serveOn(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, end := context.WithCancel(r.Context())
		defer end()
		c, ok := n.begin(place, r.Header, end)
		if !ok {
			panic(http.ErrAbortHandler)
		}
		defer n.done(c)
		to.ServeHTTP(w, r.WithContext(ctx))
	}))
}

// begin notes a call to a place, unless one of the two is cut off.
func (n *network) begin(place int, header http.Header, end context.CancelFunc) (*call, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if own := header.Get("X-Raft-To"); own != "" {
		n.places[own] = place
	}
	c := &call{from: -2, to: place, end: end}
	if from, ok := n.places[header.Get("X-Server-From")]; ok {
		c.from = from
	}
	if n.away == c.from || n.away == c.to {
		return nil, false
	}
	n.calls[c] = struct{}{}
	return c, true
}

func (n *network) done(c *call) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.calls, c)
}

// cut ends all calls from and to a place, and lets no others begin until heal.
func (n *network) cut(place int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.away = place
	for c := range n.calls {
		if c.from == place || c.to == place {
			c.end()
		}
	}
}

func (n *network) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.away = -1
}

// forward passes requests and streams to an address. Without an answer it is 502.
func forward(address string) *httputil.ReverseProxy {
	p := serving.Forward(address)
	p.FlushInterval = -1
	p.ErrorLog = log.New(io.Discard, "", 0) // of the streams that a fault ends
	p.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	return p
}

// balancer is a proxy before the members. It asks each one's /readyz, and passes requests to those that are ready, one
// after the other. It repeats nothing.
type balancer struct {
	URL string

	backends []*backend // complete before watch
	next     atomic.Int64
	failed   atomic.Int64 // answers that a client repeats
}

type backend struct {
	address string
	pass    *httputil.ReverseProxy
	ready   atomic.Bool
}

func newBalancer(t *testing.T) *balancer {
	b := &balancer{}
	b.URL = serveOn(t, b)
	return b
}

// add makes the balancer use a member.
func (b *balancer) add(address string) {
	e := &backend{address: address, pass: forward(address)}
	e.pass.ModifyResponse = func(r *http.Response) error {
		if r.StatusCode >= http.StatusInternalServerError {
			b.failed.Add(1)
		}
		return nil
	}
	e.pass.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) {
		b.failed.Add(1)
		w.WriteHeader(http.StatusBadGateway)
	}
	b.backends = append(b.backends, e)
}

// watch asks all members whether they are ready until the context ends.
func (b *balancer) watch(ctx context.Context) {
	probe := &http.Client{Timeout: time.Second}
	for ctx.Err() == nil {
		for _, e := range b.backends {
			response, err := probe.Get("http://" + e.address + "/readyz")
			if err == nil {
				_ = response.Body.Close()
			}
			e.ready.Store(err == nil && response.StatusCode == http.StatusOK)
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (b *balancer) ready() (count int) {
	for _, e := range b.backends {
		if e.ready.Load() {
			count++
		}
	}
	return count
}

// ServeHTTP passes a request to a member.
func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	all := b.backends
	first := int(b.next.Add(1))
	for i := range all {
		if e := all[(first+i)%len(all)]; e.ready.Load() {
			e.pass.ServeHTTP(w, r)
			return
		}
	}
	b.failed.Add(1)
	w.WriteHeader(http.StatusServiceUnavailable)
}
