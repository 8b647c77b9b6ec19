package remote

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// Config says which document of which server, and by what it is locked on this machine.
type Config struct {
	Server Server
	URL    string // of the server, shown in leases and messages
	Room   string // the document's id: see [Room]
	Name   string // what others are shown of this owner
	// Local locks between the tabs of this browser. Its Records may be nil.
	Local lock.Backend
}

// Document is the lock of one document, on this machine and on a server. It admits one exclusive
// lease at a time.
type Document struct {
	c    Config
	path string

	mu      sync.Mutex
	present present
}

// present is what the grant that was last is known by.
type present struct {
	token int64         // the server's
	local int64         // that of the record on this machine
	ttl   time.Duration // how long the server keeps a lock that is not renewed
}

// NewDocument returns the lock of a document. Nothing is sent before the first request.
func NewDocument(c Config) *Document {
	return &Document{c: c, path: "/api/documents/" + c.Room}
}

// Backend returns the document as a manager wants it.
func (d *Document) Backend() lock.Backend {
	return lock.Backend{Strategy: lock.Remote, Resource: d.resource(), Locker: d, Records: d, Local: &d.c.Local}
}

func (d *Document) resource() string { return strings.TrimSuffix(d.c.URL, "/") + d.path }

// Folder returns a name for what is kept on this machine of the server's documents.
func (d *Document) Folder() string {
	_, host, _ := strings.Cut(d.c.URL, "://")
	return "server-" + string(escaped(host))
}

// Room returns the id of the document that stands for a project: the project's name, with every
// byte that an id may not have, and "~", written as "~" and two hexadecimal digits. Names that
// differ have ids that differ. It fails for a name whose id would be longer than 128.
func Room(project string) (string, error) {
	id := escaped(project)
	if len(id) == 0 || len(id) > maxRoom {
		return "", &lock.Error{Code: lock.CodeInvalidArgument, Operation: lock.OpAcquire,
			Detail: "root must have 1 to " + strconv.Itoa(maxRoom) + " characters where there is a server; others than letters, digits and . _ - count three times"}
	}
	return string(id), nil
}

func escaped(s string) (id []byte) {
	const digits = "0123456789ABCDEF"
	for i := range len(s) {
		b := s[i]
		if 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || strings.IndexByte("._-", b) >= 0 {
			id = append(id, b)
		} else {
			id = append(id, '~', digits[b>>4], digits[b&0xf])
		}
	}
	return id
}

const (
	maxRoom     = 128
	waitLimit   = 50 * time.Second // of one request; a proxy may end what takes a minute
	answerLimit = 5 * time.Second  // for an answer that needs no waiting
)

// Request implements [lock.Locker]: the local lock, then the server's. The server knows no steal: one
// that is held on another machine is waited for.
func (d *Document) Request(ctx context.Context, r lock.Request) (lock.Grant, error) {
	if len(r.Wants) != 1 || r.Wants[0] != (lock.Want{Name: d.resource(), Mode: lock.Exclusive}) {
		return nil, &lock.Error{Code: lock.CodeUnsupported, Operation: lock.OpAcquire, Resource: d.resource(),
			Detail: "a lease that holds on the server is exclusive and of the whole project"}
	}
	r.Wants = []lock.Want{{Name: d.c.Local.Resource, Mode: lock.Exclusive}}
	local, err := d.c.Local.Locker.Request(ctx, r)
	if err != nil {
		return nil, err
	}
	p, err := d.take(ctx, local, r.IfAvailable)
	if err != nil {
		_ = local.Release(context.WithoutCancel(ctx))
		return nil, err
	}
	d.mu.Lock()
	d.present = p
	d.mu.Unlock()
	return &grant{d: d, local: local, token: p.token}, nil
}

// take asks the server until it grants, refuses or, where that was asked, denies.
func (d *Document) take(ctx context.Context, local lock.Grant, ifAvailable bool) (present, error) {
	ctx, stop := whileHeld(ctx, local)
	defer stop()
	pauses := lock.Backoff{}.Delays()
	path, limit := d.asking(ifAvailable)
	for {
		asked := time.Now()
		reply, err := d.sendFor(ctx, limit, Request{Method: "POST", Path: path, Name: d.c.Name})
		waited := time.Since(asked) > time.Second // the server had us wait
		if waited {
			pauses = lock.Backoff{}.Delays()
		}
		switch {
		case err == nil && reply.Status == statusOK && reply.Token > 0:
			return present{token: reply.Token, ttl: reply.ExpiresAt.Sub(reply.LockedAt)}, nil
		case ctx.Err() != nil:
			d.takeBack(ctx, local)
			return present{}, context.Cause(ctx)
		case passing(reply, err) && ifAvailable:
			return present{}, d.unreachable(reply, err)
		case passing(reply, err):
		case reply.Status != statusConflict:
			return present{}, refused(lock.OpAcquire, reply)
		case ifAvailable:
			return present{}, d.denied(reply)
		case waited: // ask again at once
			continue
		}
		sleep(ctx, max(pauses(), reply.RetryAfter))
	}
}

// whileHeld returns a context that ends when the grant is lost, too.
func whileHeld(ctx context.Context, g lock.Grant) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-g.Lost():
			end(&lock.Error{Code: lock.CodeDenied, Operation: lock.OpAcquire, Detail: "another tab took it over at the same moment"})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { end(nil) }
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// asking returns the path of the request for the lock, and how long its answer may take. fresh gives
// the session that holds it already a new token: it was another tab, which has lost the local lock.
func (d *Document) asking(ifAvailable bool) (path string, limit time.Duration) {
	path = d.path + "/lock?fresh=true"
	if ifAvailable {
		return path, answerLimit
	}
	return path + "&wait_ms=" + millis(waitLimit), waitLimit + answerLimit
}

// takeBack gives back what the server may have granted at the moment when nobody waited for it any
// more. Who stole the local lock has taken that over.
func (d *Document) takeBack(ctx context.Context, local lock.Grant) {
	if lost(local) {
		return
	}
	_, _ = d.send(context.WithoutCancel(ctx), Request{Method: "DELETE", Path: d.path + "/lock"})
}

func lost(g lock.Grant) bool {
	select {
	case <-g.Lost():
		return true
	default:
		return false
	}
}

func (d *Document) denied(r Reply) error {
	holder := r.HolderName
	if holder == "" {
		holder = "somebody"
	}
	return &lock.Error{Code: lock.CodeDenied, Operation: lock.OpAcquire, Resource: d.resource(),
		Detail: holder + " holds it in another browser"}
}

func (d *Document) unreachable(r Reply, err error) error {
	return &lock.Error{Code: lock.CodeTimeout, Operation: lock.OpAcquire, Resource: d.resource(),
		Detail: "no answer of the server; is the network there, and does the content security policy allow it (connect-src)?",
		Err:    unanswered(r, err)}
}

var errSilent = errors.New("the server does not answer")

// send waits for an answer as long as one may take; a network that loses everything gives none.
func (d *Document) send(ctx context.Context, r Request) (Reply, error) {
	return d.sendFor(ctx, answerLimit, r)
}

func (d *Document) sendFor(ctx context.Context, limit time.Duration, r Request) (Reply, error) {
	ctx, stop := context.WithTimeoutCause(ctx, limit, errSilent)
	defer stop()
	return d.c.Server.Send(ctx, r)
}

// Query tells what is known on this machine and, of another one, who holds: by the name that the
// server shows. Who has the local lock and waits for the server is first among those who wait.
func (d *Document) Query(ctx context.Context) (lock.Snapshot, error) {
	snapshot, err := d.here(ctx)
	if err != nil || len(snapshot.Held) == 0 {
		return snapshot, err
	}
	reply, failed := d.send(ctx, Request{Method: "GET", Path: d.path + "/lock"})
	if failed == nil && reply.Token != 0 && !reply.Mine {
		holder := lock.Info{Name: d.resource(), Mode: lock.Exclusive, ClientID: reply.HolderName}
		snapshot = lock.Snapshot{Held: []lock.Info{holder}, Pending: append(snapshot.Held, snapshot.Pending...)}
	}
	return snapshot, nil
}

func (d *Document) here(ctx context.Context) (lock.Snapshot, error) {
	snapshot, err := d.c.Local.Locker.Query(ctx)
	other := func(i lock.Info) bool { return i.Name != d.c.Local.Resource }
	snapshot.Held = slices.DeleteFunc(snapshot.Held, other)
	snapshot.Pending = slices.DeleteFunc(snapshot.Pending, other)
	for _, infos := range [][]lock.Info{snapshot.Held, snapshot.Pending} {
		for i := range infos {
			infos[i].Name = d.resource()
		}
	}
	return snapshot, err
}

// grant is the lock of a document, held here and there.
type grant struct {
	d     *Document
	local lock.Grant
	token int64
	once  sync.Once
}

// Lost tells of the local lock; what was lost on the server is told by the next renewal.
func (g *grant) Lost() <-chan struct{} { return g.local.Lost() }

// Release gives the lock back on the server, then here: the next tab is the same owner for the
// server, and its lock must not be given back by ours.
func (g *grant) Release(ctx context.Context) (err error) {
	g.once.Do(func() {
		if !lost(g.local) {
			reply, failed := g.d.send(ctx, Request{Method: "DELETE", Path: g.d.path + "/lock", Token: g.token})
			if passing(reply, failed) {
				err = errors.Join(errors.New("the server did not hear of it and keeps the lock until it expires"), unanswered(reply, failed))
			}
		}
		err = errors.Join(err, g.local.Release(context.WithoutCancel(ctx)))
	})
	return err
}
