// Package dav serves the documents to desktop programs by WebDAV, classes 1 and 2 (RFC 4918), below [Prefix].
//
// A document is a file. The document a~.b is the file b in the collection a. A collection exists while it has a member that
// the user may read, or if MKCOL or a property has made it. A document that is also a collection is not shown as a file.
//
// # Locks
//
// A lock is a lease of the table that everybody else uses too, so it excludes web editors, and they exclude it. A lock on a
// file is the exclusive lease on the document. A lock on a collection with depth infinity is the one on its path, and with
// depth 0 the one on the path of its members, which has the component "/". A shared lock is a slot. The token of a lock is
// the lease's name in the form of a UUID. The owner that the program states is the lease's note.
//
// A change without a lock takes one for itself. Every change commits under the fence of its lock, so a program whose lock
// has ended changes nothing.
//
// # In the store
//
// dav/dirs/<id> are the collections that MKCOL has made. dav/props/<id>, for a collection with "/" at the end, are the
// properties that programs have set. dav/moves/<id> is the destination of a collection whose move has begun,
// until the collection goes.
package dav

import (
	"errors"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/httpapi"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

// Prefix begins the path of every file.
const Prefix = "/dav/"

// Config configures a [Handler]. All fields are required.
type Config struct {
	API      *httpapi.API
	Locks    *locks.Table
	Contents *content.Store
	Store    *kv.Store
	// LockTTL is how long a lock lasts that a change takes for itself.
	LockTTL time.Duration
	// MaxContent is the maximum size of a file in bytes.
	MaxContent int64
}

// Handler serves the paths below [Prefix].
type Handler struct {
	Config
	methods map[string]func(*call) error
}

// New returns a handler.
func New(c Config) *Handler {
	h := &Handler{Config: c}
	h.methods = map[string]func(*call) error{
		"OPTIONS": h.options, "GET": h.get, "HEAD": h.get, "PUT": h.put, "DELETE": h.remove, "MKCOL": h.makeCollection,
		"COPY": h.copy, "MOVE": h.move, "PROPFIND": h.find, "PROPPATCH": h.patch, "LOCK": h.lock, "UNLOCK": h.unlock,
	}
	return h
}

const allMethods = "OPTIONS, GET, HEAD, PUT, DELETE, MKCOL, COPY, MOVE, PROPFIND, PROPPATCH, LOCK, UNLOCK"

// call is a request.
type call struct {
	w       http.ResponseWriter
	r       *http.Request
	session sessions.Session
	place   place
	// submitted are the tokens of the header If.
	submitted map[string]bool
	// pinned are the entity tags that the header If has been evaluated for, by the ids of their places.
	pinned map[string]string
}

// ServeHTTP serves a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("DAV", "1, 2")
	session, err := h.API.IdentifyProgram(r, "dav")
	if err == nil {
		err = h.serve(&call{w: w, r: r, session: session})
	}
	if err != nil {
		h.fail(w, r, session, err)
	}
}

func (h *Handler) serve(c *call) (err error) {
	method := h.methods[c.r.Method]
	if method == nil {
		c.w.Header().Set("Allow", allMethods)
		return httpapi.Refusal(http.StatusMethodNotAllowed, "method_not_allowed", "WebDAV has no such method here.")
	}
	if c.place, err = parsePlace(c.r.URL.EscapedPath()); err != nil {
		return err
	}
	if err := h.checkIf(c); err != nil {
		return err
	}
	return method(c)
}

func (h *Handler) fail(w http.ResponseWriter, r *http.Request, s sessions.Session, err error) {
	var failed *davError
	if errors.As(err, &failed) {
		failed.write(w)
		return
	}
	if httpapi.Status(err) == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="Holdfast: the password is an API key", charset="UTF-8"`)
	}
	h.API.Fail(w, r, s, err)
}

func (h *Handler) options(c *call) error {
	c.w.Header().Set("Allow", allMethods)
	c.w.Header().Set("MS-Author-Via", "DAV") // otherwise programs of Microsoft look for FrontPage
	c.w.WriteHeader(http.StatusOK)
	return nil
}

func (h *Handler) get(c *call) error {
	n, err := h.lookAtRequest(c)
	if err != nil {
		return err
	}
	if n.kind == collection {
		c.w.Header().Set("Allow", allMethods)
		return httpapi.Refusal(http.StatusMethodNotAllowed, "is_collection", "This is a collection: PROPFIND lists it.")
	}
	return h.API.ServeContent(c.w, c.r, c.place.id(), nil)
}
