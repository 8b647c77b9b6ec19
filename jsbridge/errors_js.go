//go:build js && wasm

package jsbridge

import (
	"context"
	"errors"
	"syscall/js"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/lock"
)

// Rejection is the reason of a rejected promise.
type Rejection struct{ Reason safejs.Value }

// Error returns the reason's name and message.
func (r Rejection) Error() string {
	name, message := Property(r.Reason, "name"), Property(r.Reason, "message")
	if name == "" && message == "" {
		text, err := r.Reason.String()
		if err != nil {
			return "rejected"
		}
		return text
	}
	return name + ": " + message
}

// ExceptionName returns the name of the exception behind err, such as "AbortError", or "" if there is none.
func ExceptionName(err error) string {
	var rejection Rejection
	if errors.As(err, &rejection) {
		return Property(rejection.Reason, "name")
	}
	var thrown js.Error
	if errors.As(err, &thrown) {
		return Property(safejs.Safe(thrown.Value), "name")
	}
	return ""
}

// Property returns a property that is a string; any other value is empty.
func Property(v safejs.Value, name string) string {
	if v.Type() != safejs.TypeObject {
		return ""
	}
	p, err := v.Get(name)
	if err != nil {
		return ""
	}
	return text(p)
}

// text returns a string; any other value is empty.
func text(v safejs.Value) string {
	if v.Type() != safejs.TypeString {
		return ""
	}
	s, _ := v.String()
	return s
}

// exceptions maps a refusal by navigator.locks to its meaning. An AbortError is not in the table: it means an abort of
// the caller or a steal, depending on when it arrives.
var exceptions = map[string]struct {
	code   lock.Code
	detail string
}{
	"SecurityError":     {lock.CodeWebLockUnsupported, "the browser refuses Web Locks here, as it does in sandboxed frames and where storage is blocked"},
	"InvalidStateError": {lock.CodeWebLockUnsupported, "this document is not active any more"},
	"NotSupportedError": {lock.CodeInvalidArgument, "the name or the combination of options cannot be locked"},
	"TypeError":         {lock.CodeInvalidArgument, "the name or an option has the wrong type"},
}

// refusal turns an exception of navigator.locks into an error of package lock.
func refusal(err error) error {
	if e, ok := exceptions[ExceptionName(err)]; ok {
		return &lock.Error{Code: e.code, Operation: lock.OpAcquire, Detail: e.detail, Err: err}
	}
	return &lock.Error{Code: lock.CodeUnsupported, Operation: lock.OpAcquire, Detail: "the browser refused the lock", Err: err}
}

// WithSignal returns a context that ends when the AbortSignal aborts; undefined never aborts. stop must be called.
func WithSignal(ctx context.Context, signal safejs.Value) (_ context.Context, stop func(), err error) {
	if signal.IsUndefined() || signal.IsNull() {
		return ctx, func() {}, nil // a context that never ends costs nothing
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var scope Scope
	listening := safejs.Undefined()
	stop = func() {
		if !listening.IsUndefined() { // a signal may live as long as the page
			_, _ = signal.Call("removeEventListener", "abort", listening)
		}
		scope.Release()
		cancel(nil)
	}
	abort := func([]safejs.Value) any {
		cancel(context.Canceled)
		return nil
	}
	listener, err := scope.Func(abort)
	if err == nil {
		_, err = signal.Call("addEventListener", "abort", listener)
		listening = listener
	}
	if err != nil {
		stop()
		return nil, nil, err
	}
	if aborted, err := signal.Get("aborted"); err == nil {
		if already, err := aborted.Truthy(); err == nil && already {
			abort(nil)
		}
	}
	return ctx, stop, nil
}
