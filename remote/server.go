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
	// Send returns the reply of the server, whatever its status. It fails where no reply came, and
	// with the cause when ctx ends; the request may have been carried out all the same.
	Send(ctx context.Context, r Request) (Reply, error)
	// Listen calls handle with each event that a request is for, in order, until the connection ends or ctx does. Of the request it
	// takes Path and Bearer.
	Listen(ctx context.Context, r Request, handle func(Notice)) error
}

// Notice is an event of a document. Fields that it does not have are zero.
type Notice struct {
	Type       string
	Revision   int64
	Token      int64
	Ask        string // the id of a question
	HolderName string // who holds, or who asks
}

// Request is one request to the server.
type Request struct {
	Method string
	Path   string // from the server's root, with the query
	Token  int64  // the fencing token in whose name it is made; 0 for none
	Save   Save   // which save of content it is
	Bearer string // the token of the user who asks; "" for none. It is a secret: nobody logs it
	// Fields are sent as a JSON object: string, int, int64, bool, []int64, [][]string.
	Fields map[string]any
	Body   []byte // instead of Fields; nil for none; nobody changes it until Send has returned
}

// Save says which save a content is. With it, the server refuses a save that arrives after a later one, and a client knows
// its own text again.
type Save struct {
	Draft  string // names the text that the page edits; 0 to 64 letters, digits, "-" and "_"
	Number int64  // of the snapshot, within the draft
	Order  int64  // counts the saves under one token; 0 for none
}

// Reply is what the server said. Fields that it did not send are zero.
type Reply struct {
	Status     int
	Error      string // the code, where the request failed
	Message    string
	Reason     string // why a holder keeps the lock
	RetryAfter time.Duration

	Token      int64
	LockedAt   time.Time
	ExpiresAt  time.Time
	SavedAt    time.Time
	Ticket     string  // of the acquisition that was granted
	Tokens     []int64 // of leases that another tab left
	Lease      string  // names a lock on places
	Slot       int
	Mine       bool   // the lock is this session's, or that of the first holder in the way
	HolderName string // likewise
	ETag       string
	Save       Save   // of a request for content, without the order
	Body       []byte // likewise
}

// Statuses of HTTP (RFC 9110, section 15) that mean something of their own here.
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

// unanswered says why a request that may succeed later got nowhere.
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

// notAllowed reports an answer that says that the server does not know the user, or that the user may not do this.
func notAllowed(r Reply) bool {
	return r.Status == statusUnauthorized || r.Status == statusForbidden && r.Error == "not_allowed"
}

// answer says what the server said.
func answer(r Reply) error {
	return errors.New("the server refused: " + r.Message + " (" + r.Error + ", status " + strconv.Itoa(r.Status) + ")")
}
