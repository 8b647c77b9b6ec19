package simulation

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/remote"
	"github.com/holdfast-dev/holdfast/tests/remotehttp"
)

const (
	serverTTL = 30 * time.Second
	serverURL = "http://localhost:8080"
)

var (
	errRefused = errors.New("fetch: the connection was refused")
	errBroken  = errors.New("fetch: the connection broke")
)

// browser is one browser on a machine: its connection to the server, and its cookies, which all its origins share.
type browser struct {
	w       *world
	name    string
	dice    *dice
	service *service
	traffic sync.WaitGroup // the requests on their way

	mu      sync.Mutex
	cookies []*http.Cookie
	net     networkState
	last    time.Time // the time of the last lost or late heartbeat
	any     time.Time // the time of the last lost or late request
}

// networkState describes how the network currently behaves.
type networkState struct {
	lose      float64 // the share of requests that are lost, and of answers that are lost
	duplicate float64 // of requests that arrive twice
	late      float64 // of requests that take up to 25 s, even after their senders have stopped waiting
	slow      time.Duration
	cut       bool
}

func (b *browser) set(net networkState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.net = net
}

func (b *browser) network() networkState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.net
}

// bad records a fault of a request that its sender cannot repair at once.
func (b *browser) bad(method string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.any = time.Now()
	if method == http.MethodPut {
		b.last = b.any
	}
}

// badSince reports whether heartbeats, or any requests, were lost or late since a moment.
func (b *browser) badSince(t time.Time) (heartbeats, any bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last.After(t) || b.net.cut, b.any.After(t) || b.net.cut
}

// leg returns the duration of one direction of a request. lost means that it never arrives.
func (b *browser) leg(method string, net networkState, request bool) (long time.Duration, lost bool) {
	long = b.dice.between(200*time.Microsecond, 30*time.Millisecond)
	if net.slow > 0 && b.dice.chance(0.3) {
		long = b.dice.between(30*time.Millisecond, net.slow)
	}
	if request && b.dice.chance(net.late) {
		long = b.dice.between(time.Second, 25*time.Second) // the server remembers abandoned requests for 30 s
	}
	lost = net.cut || b.dice.chance(net.lose)
	if lost || long > time.Second {
		b.bad(method)
	}
	return long, lost
}

// exchange is one request on its way.
type exchange struct {
	b       *browser
	r       remote.Request
	origin  string
	cookies []*http.Cookie
	given   chan struct{} // closed when the sender has given up or is gone
	reply   chan answer   // only the first one counts
}

type answer struct {
	reply remote.Reply
	err   error
}

// send starts a request.
func (b *browser) send(origin string, r remote.Request) *exchange {
	b.mu.Lock()
	cookies := append([]*http.Cookie(nil), b.cookies...)
	b.mu.Unlock()
	x := &exchange{b: b, r: r, origin: origin, cookies: cookies, given: make(chan struct{}), reply: make(chan answer, 2)}
	b.traffic.Go(x.travel)
	if b.dice.chance(b.network().duplicate) {
		b.traffic.Go(x.travel)
	}
	return x
}

// travel takes a request to an instance and the answer back. Sometimes a request arrives although its sender has
// given up, and the server learns later that nobody waits.
func (x *exchange) travel() {
	net := x.b.network()
	long, lost := x.b.leg(x.r.Method, net, true)
	arrives := time.NewTimer(long)
	defer arrives.Stop()
	select {
	case <-arrives.C:
	case <-x.given:
		if x.b.dice.chance(0.5) {
			return
		}
		<-arrives.C
	}
	if lost {
		return
	}
	if long > time.Second || x.b.w.verbose {
		x.b.w.note(x.b.name, "%s %s %v arrives after %s", x.r.Method, x.r.Path, x.r.Fields, long)
	}
	in := x.b.service.any(x.b.dice)
	if in == nil {
		x.b.bad(x.r.Method)
		x.back(net, answer{err: errRefused}, nil)
		return
	}
	x.serve(in, net)
}

// serve makes an instance answer.
func (x *exchange) serve(in *instance, net networkState) {
	ctx, gone := context.WithCancel(context.Background())
	defer gone()
	served := make(chan *http.Response, 1)
	go func() {
		w := httptest.NewRecorder()
		in.handler.ServeHTTP(w, x.request(ctx))
		served <- w.Result()
	}()
	hears := x.given
	for {
		select {
		case response := <-served:
			select {
			case <-in.dead:
				x.back(net, answer{err: errBroken}, nil)
			default:
				reply, err := remotehttp.ReadReply(response)
				x.back(net, answer{reply, err}, response.Cookies())
			}
			return
		case <-hears:
			hears = nil
			if x.b.dice.chance(0.9) { // otherwise a proxy keeps the connection
				time.AfterFunc(x.b.dice.between(200*time.Microsecond, 30*time.Millisecond), gone)
			}
		case <-in.dead:
			x.b.bad(x.r.Method)
			gone()
			<-served
			x.back(net, answer{err: errBroken}, nil)
			return
		}
	}
}

// back takes an answer to the browser.
func (x *exchange) back(net networkState, a answer, cookies []*http.Cookie) {
	long, lost := x.b.leg(x.r.Method, net, false)
	time.Sleep(long)
	if lost {
		return
	}
	if x.b.w.verbose {
		x.b.w.note(x.b.name, "answer to %s %s: %+v %v, %d cookies", x.r.Method, x.r.Path, a.reply, a.err, len(cookies))
	}
	x.b.keep(cookies)
	select {
	case x.reply <- a:
	default:
	}
}

// keep stores cookies. A cookie with the same name is replaced.
func (b *browser) keep(cookies []*http.Cookie) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range cookies {
		kept := b.cookies[:0]
		for _, old := range b.cookies {
			if old.Name != c.Name {
				kept = append(kept, old)
			}
		}
		b.cookies = append(kept, c)
	}
}

// request returns the request in the form that the server receives.
func (x *exchange) request(ctx context.Context) *http.Request {
	body, _ := remotehttp.Body(x.r) // its fields are strings, numbers and lists of them
	r := httptest.NewRequestWithContext(ctx, x.r.Method, serverURL+x.r.Path, bytes.NewReader(body))
	r.Header.Set("Origin", x.origin)
	remotehttp.SetHeaders(r.Header, x.r)
	for _, c := range x.cookies {
		r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
	}
	return r
}
