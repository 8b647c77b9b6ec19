package lock

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/inorder"
)

// Operation is the operation that an [Error] ended.
type Operation string

// The operations of a lease.
const (
	OpAcquire Operation = "acquire"
	OpRenew   Operation = "renew"
	OpRelease Operation = "release"
	// OpCall is a call of a service that another tab runs. Only the browser package makes such calls.
	OpCall Operation = "call"
)

// Code is the stable identity of an error. The spelling of a code never changes.
type Code string

// The codes, in the order of the declaration file.
const (
	CodeWebLockUnsupported Code = "web-lock-unsupported"
	CodeDenied             Code = "acquire-denied"
	CodeTimeout            Code = "acquire-timeout"
	CodeFallbackConflict   Code = "fallback-conflict"
	CodeStale              Code = "lease-stale"
	CodeRenewFailed        Code = "renew-failed"
	CodeReleaseFailed      Code = "release-failed"
	CodeNotAllowed         Code = "not-allowed"
	CodeCallLost           Code = "call-lost"
	CodeLoadFailed         Code = "load-failed"
	CodeLost               Code = "lease-lost"
	CodeDeadlock           Code = "deadlock"
	CodeReentrant          Code = "reentrant"
	CodeAborted            Code = "aborted"
	CodeUnsupported        Code = "unsupported"
	CodeInvalidArgument    Code = "invalid-argument"
	CodeCrashed            Code = "runtime-crashed"
)

// CodeInfo describes the meaning of a code for the caller.
type CodeInfo struct {
	Code Code
	// Operation is where the code arises; empty if any operation can end with it.
	Operation Operation
	// Retryable reports whether the same call may succeed later.
	Retryable bool
}

var codes = []CodeInfo{
	{CodeWebLockUnsupported, OpAcquire, true},
	{CodeDenied, OpAcquire, true},
	{CodeTimeout, OpAcquire, true},
	{CodeFallbackConflict, OpAcquire, true},
	{CodeStale, OpRenew, false},
	{CodeRenewFailed, OpRenew, true},
	{CodeReleaseFailed, OpRelease, false},
	{CodeNotAllowed, "", false},
	{CodeCallLost, OpCall, false},
	{CodeLoadFailed, "", true},
	{CodeLost, OpRenew, false},
	{CodeDeadlock, OpAcquire, true},
	{CodeReentrant, OpAcquire, false},
	{CodeAborted, OpAcquire, false},
	{CodeUnsupported, OpAcquire, false},
	{CodeInvalidArgument, "", false},
	{CodeCrashed, "", false},
}

// Codes returns the only table of all codes. A test compares it with the declaration file of the browser package.
func Codes() []CodeInfo { return append([]CodeInfo(nil), codes...) }

// more are the codes of the packages that build on this one.
var more []CodeInfo

// Declare makes the codes of a package that builds on this one known to [Error]. It is meant for the initialisation of
// package variables, and returns its argument.
func Declare(codes []CodeInfo) []CodeInfo {
	more = append(more, codes...)
	return codes
}

// Info describes the meaning of the code. It is zero for a code that nobody declared.
func (c Code) Info() CodeInfo {
	for _, table := range [][]CodeInfo{codes, more} {
		for _, i := range table {
			if i.Code == c {
				return i
			}
		}
	}
	return CodeInfo{Code: c}
}

// Error is the only error type of this package and of those that build on it. Match it by code:
//
//	errors.Is(err, lock.ErrDenied)
type Error struct {
	_         [0]func() // disallow ==, whose code would be in the Wasm
	Code      Code
	Operation Operation
	Resource  string // the resource of the operation; may be empty for invalid arguments
	Detail    string // why it failed and what can be done, as one or two sentences
	Err       error  // the cause, if there is one
}

// Targets for [errors.Is], one for each code.
var (
	ErrWebLockUnsupported = &Error{Code: CodeWebLockUnsupported}
	ErrDenied             = &Error{Code: CodeDenied}
	ErrTimeout            = &Error{Code: CodeTimeout}
	ErrFallbackConflict   = &Error{Code: CodeFallbackConflict}
	ErrStale              = &Error{Code: CodeStale}
	ErrRenewFailed        = &Error{Code: CodeRenewFailed}
	ErrReleaseFailed      = &Error{Code: CodeReleaseFailed}
	ErrNotAllowed         = &Error{Code: CodeNotAllowed}
	ErrLost               = &Error{Code: CodeLost}
	ErrDeadlock           = &Error{Code: CodeDeadlock}
	ErrReentrant          = &Error{Code: CodeReentrant}
	ErrAborted            = &Error{Code: CodeAborted}
	ErrUnsupported        = &Error{Code: CodeUnsupported}
	ErrInvalidArgument    = &Error{Code: CodeInvalidArgument}
	ErrCallLost           = &Error{Code: CodeCallLost}
	ErrLoadFailed         = &Error{Code: CodeLoadFailed}
	ErrCrashed            = &Error{Code: CodeCrashed}
)

// Retryable reports whether the same call may succeed later.
func (e *Error) Retryable() bool { return e.Code.Info().Retryable }

// Error names the operation, the resource and the reason.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Code))
	if e.Resource != "" {
		b.WriteString(": could not " + string(e.Operation) + " " + quote(e.Resource))
	}
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	if e.Err != nil {
		b.WriteString(" (" + e.Err.Error() + ")")
	}
	return b.String()
}

// Is matches any *Error of the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func quote(s string) string { return `"` + s + `"` }

// millis formats a time as the options do.
func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// PanicText describes a recovered panic without fmt, which would make the Wasm a tenth larger.
func PanicText(recovered any) string { return inorder.PanicText(recovered) }

// invalid reports an option that cannot be used, under its public name.
func invalid(option, why string) *Error {
	return &Error{Code: CodeInvalidArgument, Operation: OpAcquire, Detail: option + " " + why}
}

// asError converts an error of an adapter into an *Error about resource. An error of another type gets the given code.
func asError(err error, code Code, op Operation, resource string) *Error {
	var e *Error
	if !errors.As(err, &e) {
		return &Error{Code: code, Operation: op, Resource: resource, Err: err}
	}
	known := *e
	if known.Operation == "" {
		known.Operation = op
	}
	if known.Resource == "" {
		known.Resource = resource
	}
	return &known
}
