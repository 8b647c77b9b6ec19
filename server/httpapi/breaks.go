package httpapi

import (
	"net/http"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/server/audit"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/policy"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

// breakBody is the body of a request to break a lock.
type breakBody struct {
	Reason     string  `json:"reason"`
	HolderName *string `json:"holder_name"`
}

// breakDocument ends another session's lock on a document.
func (a *API) breakDocument(w http.ResponseWriter, r *http.Request, s sessions.Session, id string) error {
	lease, _, err := a.Locks.At(r.Context(), locks.Document(id))
	if err != nil {
		return err
	}
	if lease.Token == 0 || !lease.Records(locks.Document(id)) {
		return locks.ErrNotFound
	}
	return a.breakLock(w, r, s, lease)
}

// breakLease ends another session's lock by its id. A lock that the session may not read counts as missing.
func (a *API) breakLease(w http.ResponseWriter, r *http.Request, s sessions.Session) error {
	lease, err := a.Locks.ByID(r.Context(), r.PathValue("leaseId"))
	if err != nil {
		return err
	}
	if len(a.readable(s, lease.Paths)) == 0 {
		return locks.ErrNotFound
	}
	return a.breakLock(w, r, s, lease)
}

func (a *API) breakLock(w http.ResponseWriter, r *http.Request, s sessions.Session, lease locks.Lease) error {
	var body breakBody
	if err := a.readBody(w, r, &body, false); err != nil {
		return err
	}
	if body.Reason == "" || len(body.Reason) > maxReason || !utf8.ValidString(body.Reason) {
		return invalid("reason says why the lock is broken, in 1 to 1024 bytes.")
	}
	by, err := holder(s, body.HolderName, r.URL.Query())
	if err != nil {
		return err
	}
	if !a.mayBreak(s, lease) {
		return a.refused(s)
	}
	// If the audit log cannot be written, the lock stays.
	if err := a.audited(r, s, audit.Entry{
		Event: audit.Break, Paths: texts(lease.Paths), Holder: lease.Holder.Name, Token: lease.Token, Reason: body.Reason,
	}); err != nil {
		return err
	}
	ctx, cancel := a.detached(r)
	defer cancel()
	if err := a.Locks.Break(ctx, lease, by, body.Reason); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, done{true, "The lock has ended."})
	return nil
}

// mayBreak reports whether a session may break locks on all paths of a lease.
func (a *API) mayBreak(s sessions.Session, lease locks.Lease) bool {
	rules := a.Policy()
	for _, p := range lease.Paths {
		if !rules.May(s.User, p, policy.Break) {
			return false
		}
	}
	return true
}

func texts(paths []locks.Path) (list [][]string) {
	for _, p := range paths {
		list = append(list, p)
	}
	return list
}

var errAudit = &apiError{http.StatusServiceUnavailable, "unavailable", "The audit log cannot be written, so nothing was done."}

// audited writes an action to the audit log before the session performs it. If that fails, the action must not be
// performed.
func (a *API) audited(r *http.Request, s sessions.Session, e audit.Entry) error {
	return a.audit(r, s, e, true)
}

// noted writes an action to the audit log after it has happened.
func (a *API) noted(r *http.Request, s sessions.Session, e audit.Entry) {
	_ = a.audit(r, s, e, false) // the server's log contains the error
}

func (a *API) audit(r *http.Request, s sessions.Session, e audit.Entry, lasting bool) error {
	e.User, e.HolderID, e.Address, e.Method, e.Path = s.User.Name, s.HolderID, Clipped(a.Address(r)), Clipped(r.Method), Clipped(r.URL.Path)
	if err := a.Audit.Write(e, lasting); err != nil {
		a.Log.Error("the audit log cannot be written", "error", err)
		return errAudit
	}
	return nil
}

// maxLogged is the maximum size of a part of a request in a log. Everybody can send requests that are refused, and a method and a path
// may have 64 KiB.
const maxLogged = 1 << 10

// Clipped returns the beginning of a part of a request, for a log.
func Clipped(text string) string {
	if len(text) > maxLogged {
		return text[:maxLogged] + "…"
	}
	return text
}
