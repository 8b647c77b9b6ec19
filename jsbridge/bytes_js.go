//go:build js && wasm

package jsbridge

import (
	"errors"
	"sync"

	"github.com/hack-pad/safejs"
)

var errNotBytes = errors.New("these are no bytes")

// Bytes copies a Uint8Array. Anything else is an error.
func Bytes(array safejs.Value) ([]byte, error) {
	if array.Type() != safejs.TypeObject {
		return nil, errNotBytes
	}
	n, err := array.Length()
	if err != nil {
		return nil, err
	}
	b := make([]byte, n)
	_, err = safejs.CopyBytesToGo(b, array)
	return b, err
}

// Loan is bytes of Go's and the same as they came from JavaScript, so that they need not be
// copied on their way back. The bytes must not be changed. The zero value has none.
type Loan struct {
	mu    sync.Mutex
	bytes []byte
	array safejs.Value
}

// Bytes copies a Uint8Array that nobody else uses, and keeps it until the next call.
func (l *Loan) Bytes(array safejs.Value) ([]byte, error) {
	b, err := Bytes(array)
	if err == nil {
		l.mu.Lock()
		l.bytes, l.array = b, array
		l.mu.Unlock()
	}
	return b, err
}

// Uint8Array returns what these bytes were copied from, and keeps it no more, or a copy.
// Either way it is the caller's.
func (l *Loan) Uint8Array(b []byte) (safejs.Value, error) {
	l.mu.Lock()
	kept, array := l.bytes, l.array
	same := len(b) > 0 && len(kept) == len(b) && &kept[0] == &b[0]
	l.bytes, l.array = nil, safejs.Value{}
	l.mu.Unlock()
	if same {
		return array, nil
	}
	return Uint8Array(b)
}

// Uint8Array returns a copy of the bytes.
func Uint8Array(b []byte) (safejs.Value, error) {
	array, err := NewBytes(len(b))
	if err == nil {
		_, err = safejs.CopyBytesToJS(array, b)
	}
	return array, err
}

// NewBytes returns a Uint8Array of n zeros.
func NewBytes(n int) (safejs.Value, error) {
	class, err := safejs.Global().Get("Uint8Array")
	if err != nil {
		return safejs.Value{}, err
	}
	return class.New(n)
}
