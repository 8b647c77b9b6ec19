package dav

import (
	"errors"
	"net/http"
	"slices"

	"github.com/holdfast-dev/holdfast/server/httpapi"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

// davError is an error with a precondition of RFC 4918, section 16, and the resources that it is about.
type davError struct {
	status       int
	precondition string
	hrefs        []string
}

func (e *davError) Error() string { return e.precondition }

func (e *davError) write(w http.ResponseWriter) {
	x := newXML()
	x.open("error")
	if len(e.hrefs) == 0 {
		x.empty(e.precondition)
	} else {
		x.open(e.precondition)
		for _, href := range e.hrefs {
			x.text("href", href)
		}
		x.close(e.precondition)
	}
	x.close("error")
	x.send(w, e.status)
}

// locked is the error for a change that needs the tokens of locks. It names the locks that the session may see.
func (h *Handler) locked(s sessions.Session, p place, leases []locks.Lease) error {
	return &davError{http.StatusLocked, "lock-token-submitted", h.roots(s, p, leases)}
}

// denied translates the error of an acquisition for a change.
func (h *Handler) denied(s sessions.Session, p place, err error) error {
	if holders, ok := deniedBy(err); ok {
		return h.locked(s, p, holders)
	}
	return err
}

// deniedBy returns the leases that are in the way of an acquisition.
func deniedBy(err error) ([]locks.Lease, bool) {
	var denied *locks.DeniedError
	var left *locks.LeftError
	if errors.As(err, &denied) {
		return denied.Holders, true
	}
	return nil, errors.As(err, &left)
}

// maxRoots is the size of the URLs of locks in an error, in bytes, above which it names no further ones. A client may hold thousands of locks on
// long paths.
const maxRoots = 16 << 10

// roots returns the URLs of locks, the first ones if there are many. Without one that the session may see, it is the URL of the place.
func (h *Handler) roots(s sessions.Session, p place, leases []locks.Lease) (hrefs []string) {
	size := 0
	for _, l := range leases {
		for _, path := range l.Paths {
			if size > maxRoots {
				return hrefs
			}
			at, members, ok := placeOf(path)
			if href := at.href(members); ok && h.API.MayRead(s, []locks.Path{path}) && !slices.Contains(hrefs, href) {
				hrefs, size = append(hrefs, href), size+len(href)
			}
		}
	}
	if len(hrefs) == 0 {
		return []string{p.href(false)}
	}
	return hrefs
}

// statusOf is the status of an error in a list of several.
func statusOf(err error) int {
	var failed *davError
	if errors.As(err, &failed) {
		return failed.status
	}
	return httpapi.Status(err)
}
