//go:build js && wasm

package jsbridge

import (
	"errors"

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

// Content is a text that a page wants to save: an object with the bytes, as the field bytes. If Go does not need them,
// it passes the object on. Go then has no reference to the bytes, which would keep them until its next collection.
type Content struct{ Object safejs.Value }

// Bytes copies the content into Go.
func (c Content) Bytes() ([]byte, error) {
	array, _ := c.Object.Get("bytes") // Bytes checks the type
	return Bytes(array)
}

// Drop forgets the bytes.
func (c Content) Drop() { _ = c.Object.Set("bytes", safejs.Undefined()) }

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
