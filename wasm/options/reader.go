// Package options reads what a page tells Go in a call. It crosses from JavaScript as one JSON text: an object would
// cross field by field, and each field costs as much as the whole text.
package options

import (
	"math"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// Reader reads the fields of an object and keeps the first fault. null and every other type than the expected one are
// faults; a field that is absent is not.
type Reader struct {
	fields map[string]any
	prefix string // of the names in faults
	fault  *error // the first one of this object and those in it
}

// Read returns the reader of an object. An empty text stands for an object without fields.
func Read(text string) (*Reader, error) {
	r := &Reader{fault: new(error)}
	if text == "" {
		return r, nil
	}
	v, err := parse(text)
	if err != nil {
		return nil, err
	}
	var ok bool
	if r.fields, ok = v.(map[string]any); !ok {
		return nil, errNotJSON
	}
	return r, nil
}

// Err returns the first fault, or nil.
func (r *Reader) Err() error { return *r.fault }

// Fail keeps the error, unless there is one already.
func (r *Reader) Fail(err error) {
	if *r.fault == nil {
		*r.fault = err
	}
}

// Fault keeps that a field is wrong. The reason follows its name in a sentence.
func (r *Reader) Fault(name, why string) {
	r.Fail(&lock.Error{Code: lock.CodeInvalidArgument, Operation: lock.OpAcquire, Detail: r.prefix + name + " " + why})
}

// Has reports whether there is a field, of whatever type.
func (r *Reader) Has(name string) bool {
	_, ok := r.fields[name]
	return ok
}

// get returns a field; the zero value if it is absent or of another type, which is a fault.
func get[T any](r *Reader, name, kind string) (t T, ok bool) {
	v, there := r.fields[name]
	if !there {
		return t, false
	}
	if t, ok = v.(T); !ok {
		r.Fault(name, "must be "+kind)
	}
	return t, ok
}

// Inner returns the reader of the object in a field; nil if it is absent.
func (r *Reader) Inner(name string) *Reader {
	fields, ok := get[map[string]any](r, name, "an object")
	if !ok {
		return nil
	}
	return &Reader{fields: fields, prefix: r.prefix + name + ".", fault: r.fault}
}

// Text returns a text; "" if it is absent.
func (r *Reader) Text(name string) string {
	s, _ := get[string](r, name, "a string")
	return s
}

// Choice returns a text that is never empty, because the empty one would mean the default.
func (r *Reader) Choice(name string) string {
	s, ok := get[string](r, name, "a string")
	if ok && s == "" {
		r.Fault(name, "must not be empty")
	}
	return s
}

// Flag returns a boolean; absent if there is none.
func (r *Reader) Flag(name string, absent bool) bool {
	if b, ok := get[bool](r, name, "a boolean"); ok {
		return b
	}
	return absent
}

// Whole returns a whole number; 0 if it is absent.
func (r *Reader) Whole(name string) int {
	n := r.Number(name, 0)
	if n != math.Trunc(n) {
		r.Fault(name, "must be a whole number")
	}
	return int(min(n, 1<<53))
}

// Number returns a number that is not negative; 0 if it is absent. zero replaces 0, because 0 in the Go options means
// their default; if zero is 0, the number must be positive.
func (r *Reader) Number(name string, zero float64) float64 {
	n, ok := get[float64](r, name, "a finite number")
	switch {
	case !ok:
		return 0
	case n < 0:
		r.Fault(name, "must not be negative")
	case n == 0 && zero == 0:
		r.Fault(name, "must be positive")
	case n == 0:
		return zero
	}
	return n
}

// longest is the longest time that differs from forever: about 31 years.
const longest = 1e12 // ms

// Duration returns a time in milliseconds, as Number returns its number.
func (r *Reader) Duration(name string, zero time.Duration) time.Duration {
	ms := r.Number(name, float64(zero))
	if ms == float64(zero) {
		return zero
	}
	return time.Duration(min(ms, longest) * float64(time.Millisecond))
}

// Path returns an array of texts; an empty one if it is absent.
func (r *Reader) Path(name string) []string {
	list, _ := get[[]any](r, name, "an array")
	return r.path(name, list, "must be an array of strings")
}

func (r *Reader) path(name string, list []any, must string) []string {
	path := make([]string, len(list))
	for i, part := range list {
		var ok bool
		if path[i], ok = part.(string); !ok {
			r.Fault(name, must)
		}
	}
	return path
}

// Paths returns an array of arrays of texts; nil if it is absent.
func (r *Reader) Paths(name string) [][]string {
	list, ok := get[[]any](r, name, "an array")
	if !ok {
		return nil
	}
	const must = "must be an array of arrays of strings"
	paths := make([][]string, len(list))
	for i, item := range list {
		path, ok := item.([]any)
		if !ok {
			r.Fault(name, must)
		}
		paths[i] = r.path(name, path, must)
	}
	return paths
}
