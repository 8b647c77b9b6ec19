package autosave

import (
	"errors"

	"github.com/holdfast-dev/holdfast/lock"
)

// The operations of AutoSave, as [lock.Error] names them.
const (
	OpSave lock.Operation = "save"
	OpRead lock.Operation = "read"
	OpEdit lock.Operation = "edit"
)

// Code is the stable identity of an error. The spelling of a code never changes. Errors of a lock keep the code of
// package lock.
type Code = lock.Code

// The codes.
const (
	// Of a [Store].
	CodeWriteFailed Code = "write-failed"    // retryable: nothing was committed
	CodeQuota       Code = "quota-exceeded"  // retryable: no space; nothing was committed
	CodeEvicted     Code = "storage-evicted" // retryable: the browser has emptied the storage
	CodeReadFailed  Code = "read-failed"     // retryable
	CodeCorrupted   Code = "data-corrupted"  // final: Resource names the generation
	CodeStaleToken  Code = "stale-token"     // final: another editor came after
	CodeNotFound    Code = "not-found"       // final: no such generation
	// Of a [Saver].
	CodeSnapshotFailed   Code = "snapshot-failed"  // retryable: the page could not return its content
	CodeReadOnly         Code = "read-only"        // retryable: this page may not write now
	CodeDisabled         Code = "disabled"         // final: AutoSave is switched off
	CodeDisposed         Code = "disposed"         // final: AutoSave has ended
	CodeHandoverRefused  Code = "handover-refused" // retryable: the page that edits refused
	CodeHandoverBusy     Code = "handover-busy"    // retryable: another page asked before
	CodeHandoverNoAnswer Code = "handover-timeout" // retryable: nobody answered; force takes it
	// Of both packages.
	CodeAborted         = lock.CodeAborted         // the caller gave up
	CodeInvalidArgument = lock.CodeInvalidArgument // the message names the option
)

var codes = lock.Declare([]lock.CodeInfo{
	{Code: CodeWriteFailed, Operation: OpSave, Retryable: true},
	{Code: CodeQuota, Operation: OpSave, Retryable: true},
	{Code: CodeEvicted, Operation: OpSave, Retryable: true},
	{Code: CodeReadFailed, Operation: OpRead, Retryable: true},
	{Code: CodeCorrupted, Operation: OpRead},
	{Code: CodeStaleToken, Operation: OpSave},
	{Code: CodeNotFound, Operation: OpRead},
	{Code: CodeSnapshotFailed, Operation: OpSave, Retryable: true},
	{Code: CodeReadOnly, Operation: OpSave, Retryable: true},
	{Code: CodeDisabled, Operation: OpSave},
	{Code: CodeDisposed, Operation: OpSave},
	{Code: CodeHandoverRefused, Operation: OpEdit, Retryable: true},
	{Code: CodeHandoverBusy, Operation: OpEdit, Retryable: true},
	{Code: CodeHandoverNoAnswer, Operation: OpEdit, Retryable: true},
})

// Codes returns the table of the codes that package lock does not have. A test compares it with the declaration file of
// the browser package.
func Codes() []lock.CodeInfo { return append([]lock.CodeInfo(nil), codes...) }

// Error is the error type of this package, that of package lock. Match it by code:
//
//	errors.Is(err, autosave.ErrQuota)
//
// Its Resource is the id of a generation if the error is about one, as data-corrupted and not-found always are.
type Error = lock.Error

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
	ErrAborted          = lock.ErrAborted
	ErrInvalidArgument  = lock.ErrInvalidArgument
)

// asError converts an error of a port into an error with a code of this package. An error without such a code, or with
// a code of a lock, gets the given code.
func asError(err error, code Code, detail string) *Error {
	var e *Error
	if errors.As(err, &e) && e.Operation != lock.OpAcquire {
		return e
	}
	return &Error{Code: code, Detail: detail, Err: err}
}
