//go:build js && wasm

package jsbridge

import (
	"context"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/lock"
)

// Await returns the value of the promise, its rejection as an error, or the cause when ctx ends first. A value that is
// no promise is returned unchanged.
//
// It must not be called from a [Callback]: the promise could never settle.
func Await(ctx context.Context, promise safejs.Value) (safejs.Value, error) {
	if !thenable(promise) {
		return promise, nil
	}
	type outcome struct {
		value safejs.Value
		err   error
	}
	var scope Scope
	defer scope.Release()
	settled := make(chan outcome, 1)
	fulfilled, err := scope.Func(func(args []safejs.Value) any {
		settled <- outcome{value: first(args)}
		return nil
	})
	if err != nil {
		return safejs.Value{}, err
	}
	rejected, err := scope.Func(func(args []safejs.Value) any {
		settled <- outcome{err: Rejection{first(args)}}
		return nil
	})
	if err != nil {
		return safejs.Value{}, err
	}
	if _, err := promise.Call("then", fulfilled, rejected); err != nil {
		return safejs.Value{}, err
	}
	select {
	case o := <-settled:
		return o.value, o.err
	case <-ctx.Done():
		return safejs.Value{}, context.Cause(ctx)
	}
}

func thenable(v safejs.Value) bool {
	if v.Type() != safejs.TypeObject {
		return false
	}
	then, err := v.Get("then")
	return err == nil && then.Type() == safejs.TypeFunction
}

func first(args []safejs.Value) safejs.Value {
	if len(args) == 0 {
		return safejs.Undefined()
	}
	return args[0]
}

// Exports are Go functions that JavaScript may call.
type Exports struct {
	scope   Scope
	workers pool
	// Reason converts an error into the reason of a rejection; the reason may be a [Text].
	Reason func(error) any
}

// Func exports fn as a function that returns a promise. Each call runs on a goroutine of its own. A panic rejects that
// call alone, with the code "runtime-crashed". A [Text] that fn returns arrives as the value that it encodes.
func (e *Exports) Func(fn func(args []safejs.Value) (any, error)) (safejs.Value, error) {
	id := e.scope.number(func(call int) {
		e.workers.run(func() { e.settle(call, fn) })
	})
	return port.Call("exported", id)
}

func (e *Exports) settle(call int, fn func([]safejs.Value) (any, error)) {
	args, err := argsOf(call)
	var value any
	if err == nil {
		value, err = recovered(fn, args)
	}
	if err == nil {
		value, isText := plain(value)
		_, err = port.Call("settle", call, true, value, isText)
	}
	if err != nil {
		reason, isText := plain(e.Reason(err))
		_, _ = port.Call("settle", call, false, reason, isText)
	}
}

// argsOf returns the arguments of the call that port.js knows by this number.
func argsOf(call int) ([]safejs.Value, error) {
	list, err := port.Call("args", call)
	if err != nil {
		return nil, err
	}
	n, err := list.Length()
	if err != nil {
		return nil, err
	}
	args := make([]safejs.Value, n)
	for i := range args {
		if args[i], err = list.Index(i); err != nil {
			return nil, err
		}
	}
	return args, nil
}

// Run calls a JavaScript function that returns a promise and waits until the promise is settled or ctx has ended.
func Run(ctx context.Context, fn safejs.Value, value any) error {
	var scope Scope
	defer scope.Release()
	ended := make(chan error, 1)
	var id int
	id = scope.number(func(what int) {
		if what == runThrew {
			ended <- Rejection{reason(id)}
		} else {
			ended <- nil
		}
	})
	value, isText := plain(value)
	if _, err := port.Call("run", id, fn, value, isText); err != nil {
		return err
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func recovered(fn func([]safejs.Value) (any, error), args []safejs.Value) (value any, err error) {
	defer func() {
		if r := recover(); r != nil {
			value, err = nil, &lock.Error{Code: lock.CodeCrashed,
				Detail: "this call panicked (" + lock.PanicText(r) + "), which is a fault of Holdfast; others are not affected"}
		}
	}()
	return fn(args)
}

// Close waits for the pending calls and ends the exports.
func (e *Exports) Close() {
	e.workers.close()
	e.scope.Release()
}
