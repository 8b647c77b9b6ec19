package autosave

import (
	"errors"
	"strings"
)

// Code is the stable identity of an error. Codes never change their spelling. What a
// lock does wrong keeps the code of package lock.
type Code string

// The codes.
const (
	// Of a [Store].
	CodeWriteFailed Code = "write-failed"   // retryable: nothing was committed
	CodeQuota       Code = "quota-exceeded" // retryable: no room; nothing was committed
	CodeEvicted     Code = "storage-evicted"
	CodeReadFailed  Code = "read-failed"    // retryable
	CodeCorrupted   Code = "data-corrupted" // final: Generation names which
	CodeStaleToken  Code = "stale-token"    // final: another editor came after
	CodeNotFound    Code = "not-found"      // final: no such generation
	// Of a [Saver].
	CodeSnapshotFailed   Code = "snapshot-failed"  // retryable: the page could not say what to save
	CodeReadOnly         Code = "read-only"        // retryable: this page may not write now
	CodeDisabled         Code = "disabled"         // final: AutoSave is switched off
	CodeDisposed         Code = "disposed"         // final: AutoSave has ended
	CodeHandoverRefused  Code = "handover-refused" // retryable: the one who edits said no
	CodeHandoverBusy     Code = "handover-busy"    // retryable: another page asked before
	CodeHandoverNoAnswer Code = "handover-timeout" // retryable: nobody answered; force takes it
	CodeAborted          Code = "aborted"          // final: the caller gave up
	CodeInvalidArgument  Code = "invalid-argument" // final: the message names the option
)

// CodeInfo says what a code means for the caller.
type CodeInfo struct {
	Code Code
	// Retryable reports whether the same call may succeed later.
	Retryable bool
}

var codes = []CodeInfo{
	{CodeWriteFailed, true},
	{CodeQuota, true},
	{CodeEvicted, true},
	{CodeReadFailed, true},
	{CodeCorrupted, false},
	{CodeStaleToken, false},
	{CodeNotFound, false},
	{CodeSnapshotFailed, true},
	{CodeReadOnly, true},
	{CodeDisabled, false},
	{CodeDisposed, false},
	{CodeHandoverRefused, true},
	{CodeHandoverBusy, true},
	{CodeHandoverNoAnswer, true},
	{CodeAborted, false},
	{CodeInvalidArgument, false},
}

// Codes returns the table of all codes of this package.
func Codes() []CodeInfo { return append([]CodeInfo(nil), codes...) }

// Error is the one error type of this package. Match it by code:
//
//	errors.Is(err, autosave.ErrQuota)
type Error struct {
	Code       Code
	Generation string // of data-corrupted and not-found
	Detail     string // why it failed and what can be done
	Err        error  // the cause, where there is one
}

// Targets for [errors.Is], one for each code.
var (
	ErrWriteFailed      = &Error{Code: CodeWriteFailed}
	ErrQuota            = &Error{Code: CodeQuota}
	ErrEvicted          = &Error{Code: CodeEvicted}
	ErrReadFailed       = &Error{Code: CodeReadFailed}
	ErrCorrupted        = &Error{Code: CodeCorrupted}
	ErrStaleToken       = &Error{Code: CodeStaleToken}
	ErrNotFound         = &Error{Code: CodeNotFound}
	ErrSnapshotFailed   = &Error{Code: CodeSnapshotFailed}
	ErrReadOnly         = &Error{Code: CodeReadOnly}
	ErrDisabled         = &Error{Code: CodeDisabled}
	ErrDisposed         = &Error{Code: CodeDisposed}
	ErrHandoverRefused  = &Error{Code: CodeHandoverRefused}
	ErrHandoverBusy     = &Error{Code: CodeHandoverBusy}
	ErrHandoverNoAnswer = &Error{Code: CodeHandoverNoAnswer}
	ErrAborted          = &Error{Code: CodeAborted}
	ErrInvalidArgument  = &Error{Code: CodeInvalidArgument}
)

// Retryable reports whether the same call may succeed later.
func (e *Error) Retryable() bool {
	for _, i := range codes {
		if i.Code == e.Code {
			return i.Retryable
		}
	}
	return false
}

// Error says what failed, in which generation and why.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Code))
	if e.Generation != "" {
		b.WriteString(`: generation "` + e.Generation + `"`)
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

// asError turns what a port returned into an *Error. A foreign error gets the code
// given.
func asError(err error, code Code, detail string) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: code, Detail: detail, Err: err}
}
