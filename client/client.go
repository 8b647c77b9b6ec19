package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
)

// Config says which server a [Client] uses, and as whom.
type Config struct {
	// URL is the address of the server, such as https://locks.example.com. A path is kept; a user, a query or a fragment is an error.
	URL string
	// Key is the API key. Token replaces it where tokens expire: it is called for each request and returns the token that is valid now. With
	// neither, the client sends a random secret, which only a server without users accepts.
	Key   string
	Token func(context.Context) (string, error)
	// Name is shown to others as the holder, in 1 to 64 characters. A server with users shows the user's name instead.
	Name string
	// Patience is for how long a request is repeated that got no answer, or one that promises a later success. Default 10 s. An acquisition
	// with a longer Wait is repeated until that is over.
	Patience time.Duration
	// HTTP sends the requests. Default: a client of its own. Redirects are not followed, because they would carry the key elsewhere.
	HTTP *http.Client
}

// Client talks to one server. It may be used by several goroutines at once. [Client.Close] ends it.
type Client struct {
	config Config
	base   string
	http   *http.Client
	owners owners
	draft  string       // names this client as the writer of contents
	writes atomic.Int64 // numbers them

	running    sync.WaitGroup
	background context.Context // ends with Close
	stop       context.CancelFunc

	mu     sync.Mutex
	leases map[*Lease]struct{}
}

const defaultPatience = 10 * time.Second

// New returns a client. It sends nothing. It fails with [ErrInvalid].
func New(c Config) (*Client, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		shown := ""
		if err == nil {
			shown = u.Redacted()
		}
		return nil, invalid("connect", shown, "the URL must be the server's address, such as https://locks.example.com")
	}
	if c.Key != "" && c.Token != nil {
		return nil, invalid("connect", c.URL, "give a Key or a Token, not both")
	}
	if strings.ContainsFunc(c.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, invalid("connect", c.URL, "the key has a character that is not printable ASCII, for instance the end of the line of its file")
	}
	c.Patience = cmp.Or(c.Patience, defaultPatience)
	client := &Client{config: c, base: strings.TrimSuffix(u.String(), "/"), leases: map[*Lease]struct{}{}, owners: owners{base: rand.Text()}, draft: rand.Text()}
	client.http = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if c.HTTP != nil {
		own := *c.HTTP
		own.CheckRedirect, own.Jar = client.http.CheckRedirect, nil // a cookie would be another session
		client.http = &own
	}
	client.background, client.stop = context.WithCancel(context.Background())
	return client, nil
}

// begin counts an acquisition that begins, for [Client.Close] to end it and to wait until the returned function is called.
func (c *Client) begin(ctx context.Context) (context.Context, func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	closed := invalid("", "", "the client is closed")
	if c.background.Err() != nil {
		return nil, nil, closed
	}
	c.running.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.background, func() { cancel(closed) })
	return ctx, func() {
		stop()
		cancel(nil)
		c.running.Done()
	}, nil
}

// Close ends all acquisitions, releases all leases, and waits until nothing of this client runs in the background, or until ctx ends. Leases
// that could not be released end at their TTL.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	c.stop()
	var open []*Lease
	for l := range c.leases {
		open = append(open, l)
	}
	c.mu.Unlock()
	failed := make([]error, len(open)+1)
	var releasing sync.WaitGroup
	for i, l := range open {
		releasing.Go(func() { failed[i] = l.Release(ctx) })
	}
	releasing.Wait()
	failed[len(open)] = wait.Group(ctx, &c.running)
	return errors.Join(failed...)
}

// owners are the names of the sessions of one client. The server distinguishes holders by these names. Each acquisition has its own name, but a
// nested one shares the name of the lease around it. So the server never mistakes two independent acquisitions for a deadlock.
type owners struct {
	base string // random; without a key it is also the secret

	mu   sync.Mutex
	made int
	free []*owner
}

type owner struct {
	name    string
	uses    int
	tainted bool // the server may keep something for it
}

// take returns an owner that holds nothing.
func (o *owners) take() *owner {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := len(o.free); n > 0 {
		w := o.free[n-1]
		o.free, w.uses = o.free[:n-1], 1
		return w
	}
	o.made++
	return &owner{name: o.base + "." + itoa(int64(o.made)), uses: 1}
}

// share adds a use, if the owner still has one.
func (o *owners) share(w *owner) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if w.uses == 0 {
		return false
	}
	w.uses++
	return true
}

// done ends a use of an owner. If the server may still keep something for it, the owner is not used again.
func (o *owners) done(w *owner, clean bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w.tainted = w.tainted || !clean
	if w.uses--; w.uses == 0 && !w.tainted {
		o.free = append(o.free, w)
	}
}
