package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/policy"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

// The other interfaces of the server, such as WebDAV, use the checks and the errors of the API through the functions of
// this file.

// IdentifyProgram returns the session of a program, see [sessions.Source.OfProgram]. It fails like every call of the API
// does for a wrong origin, a wrong key, or too many requests.
func (a *API) IdentifyProgram(r *http.Request, kind string) (sessions.Session, error) {
	return a.identifyBy(r, func() (sessions.Session, error) { return a.Sessions.OfProgram(r, kind, a.Address(r)) })
}

// CountMore counts a request as n further ones, and refuses it if they exceed a limit.
func (a *API) CountMore(r *http.Request, s sessions.Session, n int) error {
	return a.countMore(r, s, n)
}

// May checks that a session has not ended and may perform an operation at a path.
func (a *API) May(s sessions.Session, p locks.Path, what policy.Permission) error {
	return a.may(s, p, what)
}

// MayBelow checks that a session may perform an operation at a path and everywhere below it.
func (a *API) MayBelow(s sessions.Session, p locks.Path, what policy.Permission) error {
	if !a.Policy().MayBelow(s.User, p, what) {
		return a.refused(s)
	}
	return nil
}

// MayReadSomewhere reports whether a session may read at a path or at a place below it. False is certain. If it reports true,
// there may still be no such place.
func (a *API) MayReadSomewhere(s sessions.Session, p locks.Path) bool {
	return a.Policy().MaySomewhere(s.User, p, policy.Read)
}

// MayLock checks that a session may lock the paths of a request with everything below them. It shortens the TTL to the
// longest that the policy allows.
func (a *API) MayLock(s sessions.Session, r *locks.Request) error { return a.mayLockWithin(s, r) }

// Writer returns the client that writes to a document, with the number of documents that the policy lets the user make.
func (a *API) Writer(s sessions.Session, id string) content.Writer {
	return a.writer(s, id, s.HolderID)
}

// MayRenew checks that the holder of a lease may still hold it.
func (a *API) MayRenew(s sessions.Session, l locks.Lease) error { return a.mayRenew(s, l.ID) }

// MayRead reports whether a session may read at least one of the paths.
func (a *API) MayRead(s sessions.Session, paths []locks.Path) bool {
	return len(a.readable(s, paths)) > 0
}

// Expected returns the condition of a write on the present content in the headers If-Match, If-None-Match and
// If-Unmodified-Since; nil if there is none.
func Expected(r *http.Request) content.Expected { return expected(r) }

// Detached returns a context for work that must finish even if the client leaves early.
func (a *API) Detached(r *http.Request) (context.Context, context.CancelFunc) { return a.detached(r) }

// Release releases a lease, even if the client leaves early.
func (a *API) Release(r *http.Request, l locks.Lease) error {
	ctx, cancel := a.detached(r)
	defer cancel()
	return a.Locks.Release(ctx, l.ID, l.Holder.ID)
}

// Drop releases a lease that its holder does not know, even if the client leaves early or the store does not answer for a while.
func (a *API) Drop(r *http.Request, l locks.Lease) {
	ctx, cancel := a.detached(r)
	defer cancel()
	a.Locks.Drop(ctx, l)
}

// WithdrawUnreceived releases a lease that was granted after the client had gone.
func (a *API) WithdrawUnreceived(r *http.Request, l locks.Lease) { a.withdrawUnreceived(r, l) }

// Status is the HTTP status that an error has as a response.
func Status(err error) int {
	if known := translate(err); known != nil {
		return known.status
	}
	return http.StatusInternalServerError
}

// Refusal returns an error with a status, a code and a sentence of its own.
func Refusal(status int, code, message string) error { return &apiError{status, code, message} }

// WriteJSON responds with a JSON value.
func WriteJSON(w http.ResponseWriter, status int, body any) { writeJSON(w, status, body) }

// CheckWholeBody refuses a body that is not the content itself, because the body would replace the whole content. Such a body is a part,
// as a client sends to resume an upload, or a compressed form.
func CheckWholeBody(r *http.Request) error {
	if r.Header.Get("Content-Range") != "" {
		return errPart
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return errEncoded
	}
	return nil
}

// BodyError returns the error for a body that could not be read.
func BodyError(err error) error { return bodyError(err) }

// Holder returns the holder of a lock. Its name is that of the user, or the given one if the session has no user.
func Holder(s sessions.Session, name string) (locks.Holder, error) {
	if sessions.CheckName(name) != nil {
		return holder(s, nil, nil)
	}
	return holder(s, &name, nil)
}
