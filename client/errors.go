package client

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Error is the error of every operation. Match it by code:
//
//	errors.Is(err, client.ErrDenied)
type Error struct {
	// Code is the server's code (docs/http.md lists them), or one of this package: "lease_lost", "lease_released", "reentrant", "unreachable",
	// "unexpected_answer", "not_modified", "aborted". Codes never change.
	Code string
	// Status is the status of the HTTP response; 0 without a response.
	Status int
	// Operation is the operation that failed, and Resource is its object.
	Operation, Resource string
	// Message gives the reason and a remedy.
	Message string
	// Holders are the leases in the way of an acquisition, the oldest first.
	Holders []Holder
	// Err is the cause, if there is one.
	Err error

	retryAfter time.Duration
}

// Targets for [errors.Is].
var (
	ErrDenied          = &Error{Code: "acquire_denied"}  // another owner holds the lock, or is ahead in the queue
	ErrTimeout         = &Error{Code: "acquire_timeout"} // the lock did not become free within Wait
	ErrDeadlock        = &Error{Code: "deadlock"}        // the request would wait forever
	ErrReentrant       = &Error{Code: "reentrant"}       // a lease around this acquisition, or another one within that lease, is in its way
	ErrLost            = &Error{Code: "lease_lost"}      // the lease has ended before its release
	ErrReleased        = &Error{Code: "lease_released"}
	ErrLockNotFound    = &Error{Code: "lock_not_found"}
	ErrNotHolder       = &Error{Code: "not_locked_by_user"}
	ErrStaleToken      = &Error{Code: "stale_token"} // the lock of the token has ended; nothing was written
	ErrStaleSave       = &Error{Code: "stale_save"}  // a later write is stored; nothing was written
	ErrNotFound        = &Error{Code: "document_not_found"}
	ErrNotModified     = &Error{Code: "not_modified"}        // the content still has the ETag
	ErrPrecondition    = &Error{Code: "precondition_failed"} // the document has another content
	ErrTooLarge        = &Error{Code: "too_large"}
	ErrStoreFull       = &Error{Code: "store_full"}
	ErrUnauthenticated = &Error{Code: "unauthenticated"} // the server needs a key or token, or does not know this one
	ErrNotAllowed      = &Error{Code: "not_allowed"}
	ErrInvalid         = &Error{Code: "invalid_request"}
	ErrUnreachable     = &Error{Code: "unreachable"} // no answer within Patience; the server may have done the operation
	ErrAborted         = &Error{Code: "aborted"}     // the context ended first; its cause matches too
)

// remedies are advice for the codes whose message from the server has none.
var remedies = map[string]string{
	"acquire_denied":     "Wait for it, or try again later.",
	"acquire_timeout":    "Wait longer, or try again later.",
	"deadlock":           "Release what you hold, then begin again.",
	"reentrant":          "Use the lease that you have.",
	"lease_lost":         "Stop: another owner may hold the lock now.",
	"stale_token":        "Acquire the lock again, and read the content before you write.",
	"unauthenticated":    "Give a valid API key or token.",
	"not_allowed":        "Ask the operator of the server for the permission.",
	"unreachable":        "Check the server and the URL.",
	"unexpected_answer":  "Check that the URL is that of a Holdfast server.",
	"wrong_host":         "Use a name that the server knows, or add this one with --host.",
	"too_large":          "Ask the operator about --max-content.",
	rateLimited:          "Send fewer requests.",
	"lock_not_found":     "Acquire it first.",
	"not_locked_by_user": "Acquire it first.",
}

// Error is a sentence: what failed, on which resource, why and what to do.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Operation)
	if e.Resource != "" {
		b.WriteString(" " + e.Resource)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	b.WriteString(strings.TrimSuffix(e.Message, "."))
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if remedy := remedies[e.Code]; remedy != "" && b.Len() > 0 {
		b.WriteString(". " + strings.TrimSuffix(remedy, "."))
	}
	b.WriteString(" (" + e.Code + ")")
	return b.String()
}

// Is matches any *Error of the same code.
func (e *Error) Is(target error) bool {
	var t *Error
	return errors.As(target, &t) && t.Code == e.Code
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// on adds the operation and the resource, if the error has none.
func (e *Error) on(operation, resource string) *Error {
	if e.Operation == "" {
		e.Operation, e.Resource = operation, resource
	}
	return e
}

func invalid(operation, resource, message string) *Error {
	return &Error{Code: ErrInvalid.Code, Operation: operation, Resource: resource, Message: message}
}

// aborted is the error for a context that ended.
func aborted(ctx context.Context) *Error {
	return &Error{Code: ErrAborted.Code, Message: "it was given up", Err: context.Cause(ctx)}
}
