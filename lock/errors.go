package lock

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Operation is what was being done when an [Error] arose.
type Operation string

// The operations of a lease.
const (
	OpAcquire Operation = "acquire"
	OpRenew   Operation = "renew"
	OpRelease Operation = "release"
)

// Code is the stable identity of an error. Codes never change their spelling.
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
	CodeLost               Code = "lease-lost"
	CodeDeadlock           Code = "deadlock"
	CodeReentrant          Code = "reentrant"
	CodeAborted            Code = "aborted"
	CodeUnsupported        Code = "unsupported"
	CodeInvalidArgument    Code = "invalid-argument"
	CodeCrashed            Code = "runtime-crashed"
)

// CodeInfo says what a code means for the caller.
type CodeInfo struct {
	Code Code
	// Operation is where the code arises; empty where any operation can end so.
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
	{CodeLost, OpRenew, false},
	{CodeDeadlock, OpAcquire, true},
	{CodeReentrant, OpAcquire, false},
	{CodeAborted, OpAcquire, false},
	{CodeUnsupported, OpAcquire, false},
	{CodeInvalidArgument, "", false},
	{CodeCrashed, "", false},
}

// Codes returns the table of all codes. It is the only one: the declaration
// file of the browser package is compared with it by a test.
func Codes() []CodeInfo { return append([]CodeInfo(nil), codes...) }

// more are the codes of the packages that build on this one.
var more []CodeInfo

// Declare makes the codes of a package that builds on this one known to [Error]. It is
// for the initialisation of package variables, and returns what it was given.
func Declare(codes []CodeInfo) []CodeInfo {
	more = append(more, codes...)
	return codes
}

// Info says what the code means. Of a code that nobody declared it says nothing.
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

// Error is the one error type of this package and of those that build on it. Match it by
// code:
//
//	errors.Is(err, lock.ErrDenied)
type Error struct {
	Code      Code
	Operation Operation
	Resource  string // what it was to be done to; may be empty for invalid arguments
	Detail    string // why it failed and what can be done, as one or two sentences
	Err       error  // the cause, where there is one
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
	ErrCrashed            = &Error{Code: CodeCrashed}
)

// Retryable reports whether the same call may succeed later.
func (e *Error) Retryable() bool { return e.Code.Info().Retryable }

// Error says what failed, on which resource and why.
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

// millis writes a time as the options do.
func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// PanicText says what a recovered panic was about. It stands for fmt, which would make the
// Wasm a tenth larger.
func PanicText(recovered any) string {
	switch r := recovered.(type) {
	case error:
		return r.Error()
	case string:
		return r
	}
	return "a value that is neither an error nor a string"
}

// invalid reports an option that cannot be used, under its public name.
func invalid(option, why string) *Error {
	return &Error{Code: CodeInvalidArgument, Operation: OpAcquire, Detail: option + " " + why}
}

// asError turns what an adapter returned into an *Error about resource. A
// foreign error gets the code given.
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
