package remote

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// Server sends requests to one Holdfast server, in the session of this program.
type Server interface {
	// Send returns the reply of the server, whatever its status. It fails if no reply came, and with the cause when ctx
	// ends; the request may have been carried out nevertheless.
	Send(ctx context.Context, r Request) (Reply, error)
	// Listen calls handle with each event of the request's path, in order, until the connection ends or ctx does. It uses only
	// Path and Bearer of the request.
	Listen(ctx context.Context, r Request, handle func(Notice)) error
}

// Notice is an event of a document. Missing fields are zero.
type Notice struct {
	Type       string
	Revision   int64
	Token      int64
	Ask        string // the id of a question
	HolderName string // the holder, or the client that asks
}

// Request is one request to the server.
type Request struct {
	Method string
	Path   string // from the server's root, with the query
	Token  int64  // the fencing token of the lease that makes the request; 0 for none
	Save   Save   // identifies the save of a content
	Bearer string // the token of the user; "" for none. It is a secret and is never logged
	// Fields are sent as a JSON object: string, int, int64, bool, []int64, [][]string.
	Fields map[string]any
	Body   []byte // instead of Fields; nil for none; nobody changes it until Send has returned
}

// Save identifies the save of a content. With it, the server refuses a save that arrives after a later one, and a
// client recognises its own text.
type Save struct {
	Draft  string // names the text of the page; 0 to 64 letters, digits, "-" and "_"
	Number int64  // of the snapshot, within the draft
	Order  int64  // counts the saves under one token; 0 for none
}

// Reply is the server's answer. Fields that it did not send are zero.
type Reply struct {
	Status     int
	Error      string // the code, if the request failed
	Message    string
	Reason     string // why a holder keeps the lock
	RetryAfter time.Duration

	Token      int64
	Paths      [][]string // of a lock that is in the way of the document's lock; nil: it is that lock
	LockedAt   time.Time
	ExpiresAt  time.Time
	SavedAt    time.Time
	Ticket     string  // of the granted acquisition
	Tokens     []int64 // of leases that another tab left behind
	Lease      string  // the id of a lock on places
	Slot       int
	Mine       bool   // the lock belongs to this session, or the first blocking lock does
	HolderName string // of that lock
	Holders    []Held // all locks that are in the way, if there are several
	ETag       string
	Save       Save   // of a content, without the order
	Body       []byte // of a content
}

// Held is a lock in a reply.
type Held struct {
	Paths      [][]string
	HolderName string
	Mine       bool // it belongs to this session
}

// Statuses of HTTP (RFC 9110, section 15) with a special meaning here.
const (
	statusOK             = 200
	statusUnauthorized   = 401
	statusForbidden      = 403
	statusNotFound       = 404
	statusTimeout        = 408
	statusConflict       = 409
	statusTooLarge       = 413
	statusTooMany        = 429
	statusServersFault   = 500
	statusBadGateway     = 502
	statusUnavailable    = 503
	statusGatewayTimeout = 504
	statusFull           = 507
)

var errServer = errors.New("the server has trouble")

// unanswered explains why a request failed that may succeed later.
func unanswered(r Reply, err error) error {
	if err != nil {
		return err
	}
	return errors.Join(errServer, errors.New("status "+strconv.Itoa(r.Status)+": "+r.Message))
}

// passing reports whether the same request may succeed later.
func passing(r Reply, err error) bool {
	return err != nil || r.Status == statusTooMany || r.Status >= statusServersFault
}

// refused returns the error for an answer that no repetition changes.
func refused(op lock.Operation, r Reply) *lock.Error {
	e := &lock.Error{Code: lock.CodeUnsupported, Operation: op, Detail: answer(r).Error()}
	switch {
	case !notAllowed(r):
	case r.Status == statusUnauthorized:
		e.Code, e.Detail = lock.CodeNotAllowed, e.Detail+"; sign in, or open Holdfast with a server.token that is valid"
	default:
		e.Code, e.Detail = lock.CodeNotAllowed, e.Detail+"; the server's policy has to permit it"
	}
	return e
}

// notAllowed reports whether the server does not know the user, or does not permit the request.
func notAllowed(r Reply) bool {
	return r.Status == statusUnauthorized || r.Status == statusForbidden && r.Error == "not_allowed"
}

// answer converts the server's answer into an error.
func answer(r Reply) error {
	return errors.New("the server refused: " + r.Message + " (" + r.Error + ", status " + strconv.Itoa(r.Status) + ")")
}
