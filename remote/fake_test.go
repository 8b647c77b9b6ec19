package remote_test

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/remote"
)

// internet is a server that lives in memory and the way to it.
type internet struct {
	ttl time.Duration

	mu      sync.Mutex
	holder  string // "" for nobody
	token   int64
	locked  time.Time
	expires time.Time
	changed chan struct{}
	broken  chan struct{} // closed when what waits for an answer is cut off
	down    bool
	silent  bool         // nothing is answered, until the request is given up
	refuse  remote.Reply // where Status is set, the answer to everything
	log     []string     // method and session of each request that arrived
	content []byte
	written int64 // token of the content; 0 for none
	saved   time.Time
}

func newInternet() *internet {
	return &internet{ttl: 30 * time.Second, changed: make(chan struct{}), broken: make(chan struct{}), token: 100}
}

var errOffline = errors.New("the network is down")

// browser sends in a session of its own.
type browser struct {
	net     *internet
	session string
	// onGrant, where set, is called when the server has granted, before the reply is on its way.
	onGrant func()
}

func (n *internet) set(down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = down
}

// cut breaks off what waits for an answer, for once.
func (n *internet) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.broken)
	n.broken = make(chan struct{})
}

func (n *internet) requests() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.log...)
}

// now returns who holds, and lets an expired lock end.
func (n *internet) now() string {
	if n.holder != "" && !time.Now().Before(n.expires) {
		n.holder = ""
	}
	return n.holder
}

func (n *internet) held() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.now()
}

func (n *internet) change() {
	close(n.changed)
	n.changed = make(chan struct{})
}

func (b *browser) Send(ctx context.Context, r remote.Request) (remote.Reply, error) {
	if ctx.Err() != nil {
		return remote.Reply{}, context.Cause(ctx)
	}
	target, err := url.Parse(r.Path)
	if err != nil {
		return remote.Reply{}, err
	}
	n := b.net
	n.mu.Lock()
	defer n.mu.Unlock()
	n.log = append(n.log, r.Method+" "+b.session)
	switch {
	case n.silent:
		n.mu.Unlock()
		<-ctx.Done()
		n.mu.Lock()
		return remote.Reply{}, context.Cause(ctx)
	case n.down:
		return remote.Reply{}, errOffline
	case n.refuse.Status != 0:
		return n.refuse, nil
	case strings.HasSuffix(r.Path, "/content"):
		return b.access(r), nil
	case r.Method == "POST":
		return b.post(ctx, target.Query())
	case r.Method == "GET" && n.now() == "":
		return remote.Reply{Status: 200}, nil
	case r.Method == "GET":
		return remote.Reply{Status: 200, Token: n.token, LockedAt: n.locked, ExpiresAt: n.expires, HolderName: "tab " + n.holder, Mine: n.holder == b.session}, nil
	case n.now() == "":
		if r.Method == "DELETE" {
			return remote.Reply{Status: 200}, nil
		}
		return remote.Reply{Status: 404, Error: "lock_not_found", Message: "There is no such lock."}, nil
	case n.holder != b.session:
		return remote.Reply{Status: 403, Error: "not_locked_by_user", Message: "It is somebody else's."}, nil
	case r.Token != 0 && r.Token != n.token:
		return remote.Reply{Status: 409, Error: "stale_token", Message: "That lock has ended."}, nil
	case r.Method == "DELETE":
		n.holder = ""
		n.change()
		return remote.Reply{Status: 200}, nil
	}
	n.expires = time.Now().Add(n.ttl)
	return remote.Reply{Status: 200, ExpiresAt: n.expires}, nil
}

// access reads or writes the content.
func (b *browser) access(r remote.Request) remote.Reply {
	n := b.net
	switch {
	case r.Method == "GET" && n.written == 0:
		return remote.Reply{Status: 404, Error: "document_not_found"}
	case r.Method == "GET":
		return remote.Reply{Status: 200, Body: n.content, Token: n.written, SavedAt: n.saved}
	case n.now() != b.session:
		return remote.Reply{Status: 403, Error: "not_locked_by_user", Message: "It is not yours."}
	case r.Token != n.token:
		return remote.Reply{Status: 409, Error: "stale_token", Message: "That lock has ended."}
	}
	n.content, n.written, n.saved = bytes.Clone(r.Body), n.token, time.Now().Truncate(time.Millisecond)
	return remote.Reply{Status: 200, SavedAt: n.saved}
}

// post is called with the mutex held, and returns so.
func (b *browser) post(ctx context.Context, query url.Values) (remote.Reply, error) {
	n := b.net
	ms, _ := strconv.Atoi(query.Get("wait_ms"))
	limit := time.After(time.Duration(ms) * time.Millisecond)
	for n.now() != "" && (n.holder != b.session || query.Get("fresh") == "") {
		changed, broken, left := n.changed, n.broken, time.Until(n.expires)
		n.mu.Unlock()
		expiry := time.NewTimer(left)
		done, gone, cut := false, false, false
		select {
		case <-changed:
		case <-broken:
			cut = true
		case <-expiry.C:
		case <-limit:
			done = true
		case <-ctx.Done():
			gone = true
		}
		expiry.Stop()
		n.mu.Lock()
		switch {
		case gone:
			return remote.Reply{}, context.Cause(ctx)
		case cut:
			return remote.Reply{}, errOffline
		case done:
			return remote.Reply{Status: 409, Error: "already_locked", HolderName: "tab " + n.holder}, nil
		}
	}
	n.token++
	n.holder, n.locked, n.expires = b.session, time.Now(), time.Now().Add(n.ttl)
	n.change()
	reply := remote.Reply{Status: 200, Token: n.token, LockedAt: n.locked, ExpiresAt: n.expires}
	if b.onGrant != nil {
		n.mu.Unlock()
		b.onGrant()
		n.mu.Lock()
		if ctx.Err() != nil {
			return remote.Reply{}, context.Cause(ctx)
		}
	}
	return reply, nil
}
