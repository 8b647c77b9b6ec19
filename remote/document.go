package remote

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/document"
	"github.com/holdfast-dev/holdfast/lock"
)

// Config names the document, its server, and the backend that locks it on this machine.
type Config struct {
	Server   Server
	URL      string // of the server, shown in leases and messages
	Document string // the document's id: see [DocumentID]
	Name     string // shown to other owners
	// Token returns the bearer token of the user, for requests to the server. It is called before the first request and whenever the
	// server has refused the last token, one call at a time. Nil: requests bear no token.
	Token func(context.Context) (string, error)
	// Browser names the tabs that Local excludes from each other: 0 to 64 letters, digits, "-" and "_". With it, this page ends no lock of
	// another browser that has the same cookie or bearer token.
	Browser string
	// Local locks between the tabs of this browser. Its Records may be nil.
	Local lock.Backend
}

// Document is the lock of one document, on this machine and on a server. As a whole, it admits one exclusive lease at a
// time. Its places are locked by [Document.Lock].
type Document struct {
	*client
	c    Config
	path string

	mu   sync.Mutex
	last lastGrant
}

// lastGrant identifies the last grant.
type lastGrant struct {
	claim
	local int64 // the token of the record on this machine
}

// NewDocument returns the lock of a document. Nothing is sent before the first request.
func NewDocument(c Config) *Document {
	path := documentPath(c.Document)
	return &Document{client: &client{server: &reach{server: c.Server, bearers: bearers{ask: c.Token}}, local: c.Local.Locker, resource: strings.TrimSuffix(c.URL, "/") + path}, c: c, path: path}
}

func documentPath(id string) string { return "/api/documents/" + id }

// Backend returns the document as a backend for a manager.
func (d *Document) Backend() lock.Backend {
	return lock.Backend{Strategy: lock.Remote, Resource: d.resource, Locker: d, Records: d, Local: &d.c.Local, Remote: d}
}

// Folder returns the folder of the files that this machine keeps for the server's documents. Servers whose URLs differ
// in scheme, host, port or path have different folders, and no folder is part of another.
func (d *Document) Folder() string {
	url := strings.TrimSuffix(d.c.URL, "/")
	if rest, ok := strings.CutPrefix(url, "https://"); ok {
		url = rest // a host contains no "://", so no other URL looks like it
	}
	folder, name := "", document.Escape(url)
	for len(name) > maxFolder {
		folder, name = folder+name[:maxFolder]+"/", "~+"+name[maxFolder:]
	}
	return "server-" + folder + name
}

// maxFolder is the maximum length of a folder's name in characters: file systems allow 255 bytes.
const maxFolder = 200

// DocumentID returns the id of the document of a project. It is the project's name, in which "~" and every byte that an id
// cannot contain are written as "~" and two hexadecimal digits. Different names have different ids. It fails for a name
// whose id would be longer than 128.
func DocumentID(project string) (string, error) {
	id := document.Escape(project)
	if len(id) == 0 || len(id) > document.MaxID {
		return "", &lock.Error{Code: lock.CodeInvalidArgument, Operation: lock.OpAcquire,
			Detail: "root must have 1 to " + strconv.Itoa(document.MaxID) + " characters where there is a server; others than letters, digits and . _ - count three times"}
	}
	return id, nil
}

// ID returns the id of a document of the project: the project itself, or the document at a path below it. The lock of
// such a document is a place on the server, so that it and the lock of the whole project exclude each other.
func (d *Document) ID(path []string) (string, error) {
	id := d.c.Document
	for _, component := range path {
		id += document.Part + document.Escape(component)
	}
	if len(id) > document.MaxID || len(path) > maxDepth {
		return "", &lock.Error{Code: lock.CodeInvalidArgument, Operation: lock.OpAcquire, Resource: d.resource,
			Detail: "with a server, root and path together must have at most " + strconv.Itoa(document.MaxID) +
				" characters, counting 2 for each component and 3 for each byte but letters, digits and . _ -"}
	}
	return id, nil
}

// maxDepth is the maximum number of components of a path below the project.
const maxDepth = document.MaxDepth - 1

// Request implements [lock.Locker]: the local lock, then the server's. The server has no steal: a client waits for a
// holder on another machine.
func (d *Document) Request(ctx context.Context, r lock.Request) (lock.Grant, error) {
	if len(r.Wants) != 1 || r.Wants[0] != (lock.Want{Name: d.resource, Mode: lock.Exclusive}) {
		return nil, &lock.Error{Code: lock.CodeUnsupported, Operation: lock.OpAcquire, Resource: d.resource,
			Detail: "as a whole, a document is locked exclusively"}
	}
	local, err := d.Local().Request(ctx, r)
	if err != nil {
		return nil, err
	}
	if r.OnLocal != nil {
		r.OnLocal()
	}
	reply, err := d.take(ctx, local, target{request: d.asking, question: d.question, document: d.c.Document, ifAvailable: r.IfAvailable, steal: r.Steal})
	if err != nil {
		_ = local.Release(context.WithoutCancel(ctx))
		return nil, err
	}
	c := reply.claim(d.path + "/lock")
	d.mu.Lock()
	d.last = lastGrant{claim: c}
	d.mu.Unlock()
	return &grant{d: d, local: local, held: d.held.add(c, 0)}, nil
}

// asking returns the request for the lock.
func (d *Document) asking(wait time.Duration, a acquisition) Request {
	return Request{Method: "POST", Path: d.path + "/lock?wait_ms=" + millis(wait) + "&" + d.query(a), Fields: d.fields()}
}

// question returns the request that asks the holder for the lock.
func (d *Document) question(grace time.Duration, a acquisition) Request {
	return d.ask(d.c.Document, grace, a)
}

func (d *Document) ask(id string, grace time.Duration, a acquisition) Request {
	fields := d.fields()
	fields["grace_ms"] = grace.Milliseconds()
	return Request{Method: "POST", Path: documentPath(id) + "/lock/ask?" + d.query(a), Fields: fields}
}

// query formats an acquisition of this browser for a query.
func (d *Document) query(a acquisition) string { return "browser=" + d.c.Browser + "&" + a.query() }

// fields are the fields of every request for a lock.
func (d *Document) fields() map[string]any {
	fields := make(map[string]any)
	if d.c.Name != "" {
		fields["holder_name"] = d.c.Name
	}
	return fields
}

// Query reports the locks of this machine and the locks of other machines that are in the way of the document, under the names that the
// server shows. If a lock of another machine excludes a lock of this machine, the client of the latter is reported as a waiter, before the
// other waiters. While the server knows of no lock or does not answer, all clients that hold local locks are reported as waiters: they may
// wait for the server, and the Manager asks the living holders themselves.
func (d *Document) Query(ctx context.Context) (lock.Snapshot, error) {
	snapshot, err := d.Local().Query(ctx)
	if err != nil || len(snapshot.Held) == 0 {
		return snapshot, err
	}
	reply, failed := d.send(ctx, Request{Method: "GET", Path: d.path + "/lock"})
	var far, here, waits []lock.Info
	if failed == nil && reply.Token != 0 {
		far = d.far(reply)
	}
	if failed == nil && reply.Mine && far == nil {
		return snapshot, nil
	}
	for _, i := range snapshot.Held {
		if far == nil || slices.ContainsFunc(far, func(other lock.Info) bool { return excludes(other.Name, i) }) {
			waits = append(waits, i)
		} else {
			here = append(here, i)
		}
	}
	return lock.Snapshot{Held: append(far, here...), Pending: append(waits, snapshot.Pending...)}, nil
}

// far returns what other machines lock on the server: the document, or places below it.
func (d *Document) far(reply Reply) (held []lock.Info) {
	all := reply.Holders
	if all == nil {
		all = []Held{{reply.Paths, reply.HolderName, reply.Mine}}
	}
	for _, one := range all {
		if one.Mine {
			continue
		}
		paths := one.Paths
		if paths == nil {
			paths = [][]string{nil}
		}
		for _, p := range paths {
			held = append(held, lock.Info{Name: lock.Name(d.resource, p[min(2, len(p)):]), Mode: lock.Exclusive, ClientID: one.HolderName})
		}
	}
	return held
}

// excludes reports whether the lock of a place excludes a lock of this machine.
func excludes(place string, i lock.Info) bool {
	return i.Name == place || strings.HasPrefix(i.Name, place+"/") || i.Mode == lock.Exclusive && strings.HasPrefix(place, i.Name+"/")
}

// grant is the lock of a document, held on this machine and on the server.
type grant struct {
	d     *Document
	local lock.Grant
	held  *term
	once  sync.Once
}

// Lost is closed when the local lock is lost or the lock was passed on. The next renewal reports any other loss on the
// server.
func (g *grant) Lost() <-chan struct{} { return g.held.lostWith(g.local.Lost()) }

// Look implements [lock.Grant]. The next renewal reports a loss: the server refuses the token of a lock that it has passed
// on.
func (g *grant) Look(context.Context, lock.Instant) error { return nil }

// Release releases the lock on the server, then here: for the server the next tab is the same owner, and this release
// must not release that tab's lock.
func (g *grant) Release(ctx context.Context) (err error) {
	g.once.Do(func() {
		err = g.d.end(ctx, g.held, g.local)
		g.d.held.remove(g.held)
		err = errors.Join(err, g.local.Release(context.WithoutCancel(ctx)))
	})
	return err
}
