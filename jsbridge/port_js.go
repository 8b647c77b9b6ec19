//go:build js && wasm

package jsbridge

import "github.com/hack-pad/safejs"

// port is the JavaScript half of this package, port.js.
var port safejs.Value

// The results of a request for a lock and of a function, as port.js reports them.
const (
	lockGranted = iota
	lockDenied
	lockFailed
)

const (
	runDone = iota
	runThrew
)

// Flags of port.lock.
const (
	lockShared = 1 << iota
	lockIfAvailable
	lockSteal
	lockAbortable
)

// Open connects this package with a Port of port.js. Exports, Run and WebLocks need it.
func Open(p safejs.Value) error {
	tell, err := jsFunc()
	if err != nil {
		return err
	}
	port = p
	_, err = p.Call("open", tell)
	return err
}

// note calls the function with this number and reports whether there is one.
func note(id, what int) bool {
	dispatcher.mu.Lock()
	fn := dispatcher.notes[id]
	dispatcher.mu.Unlock()
	if fn == nil {
		return false
	}
	fn(what)
	return true
}

// reason returns the error of a failed call. It is known only while port.js reports the failure.
func reason(id int) safejs.Value {
	v, _ := port.Call("reason", id)
	return v
}
