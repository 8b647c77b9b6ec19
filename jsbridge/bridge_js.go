//go:build js && wasm

// Package jsbridge has all JavaScript callbacks and promises. It turns
// promises into calls that return, Go functions into functions that return promises,
// and browser objects into the ports of packages lock, autosave and remote.
//
// Nothing outside this package calls js.FuncOf. Inside there is exactly one js.Func, through which JavaScript makes
// every callback. A callback whose scope was released is ignored instead of failing; a promise that lost a race may
// still make one.
package jsbridge

import (
	"sync"

	"github.com/hack-pad/safejs"
)

// Callback is a Go function called by JavaScript. It must not block: the event loop
// waits for it.
type Callback func(args []safejs.Value) any

// dispatcher has the one js.Func, and the callbacks to which it dispatches.
var dispatcher struct {
	mu    sync.Mutex
	fn    *safejs.Func
	next  int
	calls map[int]Callback
	notes map[int]func(what int) // functions that port.js calls by a number
}

// Scope owns callbacks and releases them together. The zero value is ready to use.
type Scope struct {
	mu  sync.Mutex
	ids []int
}

// Func returns a JavaScript function that calls fn until the scope is released.
func (s *Scope) Func(fn Callback) (safejs.Value, error) {
	tell, err := jsFunc()
	if err != nil {
		return safejs.Value{}, err
	}
	dispatcher.mu.Lock()
	if dispatcher.calls == nil {
		dispatcher.calls = make(map[int]Callback)
	}
	dispatcher.next++
	id := dispatcher.next
	dispatcher.calls[id] = fn
	dispatcher.mu.Unlock()
	s.own(id)
	return tell.Call("bind", safejs.Null(), id)
}

// number returns a number by which port.js may call fn until the scope is released.
func (s *Scope) number(fn func(what int)) int {
	dispatcher.mu.Lock()
	if dispatcher.notes == nil {
		dispatcher.notes = make(map[int]func(int))
	}
	dispatcher.next++
	id := dispatcher.next
	dispatcher.notes[id] = fn
	dispatcher.mu.Unlock()
	s.own(id)
	return id
}

func (s *Scope) own(id int) {
	s.mu.Lock()
	s.ids = append(s.ids, id)
	s.mu.Unlock()
}

// jsFunc returns the one js.Func. Its first argument is the number of the callback.
func jsFunc() (safejs.Value, error) {
	dispatcher.mu.Lock()
	defer dispatcher.mu.Unlock()
	if dispatcher.fn == nil {
		f, err := safejs.FuncOf(dispatch)
		if err != nil {
			return safejs.Value{}, err
		}
		dispatcher.fn = &f
	}
	return dispatcher.fn.Value(), nil
}

// Release ends the callbacks of the scope: JavaScript may still call them, without effect. The scope can be used again.
func (s *Scope) Release() {
	s.mu.Lock()
	ids := s.ids
	s.ids = nil
	s.mu.Unlock()
	dispatcher.mu.Lock()
	defer dispatcher.mu.Unlock()
	for _, id := range ids {
		delete(dispatcher.calls, id)
		delete(dispatcher.notes, id)
	}
}

// LiveCallbacks counts the callbacks whose scope is not released. It is zero after everything was closed properly.
func LiveCallbacks() int {
	dispatcher.mu.Lock()
	defer dispatcher.mu.Unlock()
	return len(dispatcher.calls) + len(dispatcher.notes)
}

// Shutdown releases the one js.Func; the program is about to end.
func Shutdown() {
	dispatcher.mu.Lock()
	defer dispatcher.mu.Unlock()
	if dispatcher.fn != nil {
		dispatcher.fn.Release()
		dispatcher.fn, dispatcher.calls, dispatcher.notes = nil, nil, nil
	}
}

func dispatch(_ safejs.Value, args []safejs.Value) any {
	id, err := args[0].Int()
	if err != nil {
		return nil
	}
	dispatcher.mu.Lock()
	call := dispatcher.calls[id]
	dispatcher.mu.Unlock()
	// No lock is held here, because the callback may call this package again.
	if call == nil {
		if len(args) == 2 {
			what, _ := args[1].Int()
			return note(id, what)
		}
		return nil
	}
	return call(args[1:])
}
