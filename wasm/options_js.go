//go:build js && wasm

package main

import (
	"math"
	"strconv"
	"time"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/lock"
)

// reader reads the fields of an options object and keeps the first fault. A field that is undefined is absent. null and
// every other type than the expected one are faults.
type reader struct {
	v      safejs.Value
	prefix string
	err    error
}

func (r *reader) get(name string, want safejs.Type, kind string) (v safejs.Value, ok bool) {
	v, err := r.v.Get(name)
	if err != nil || v.IsUndefined() {
		return v, false
	}
	if v.Type() != want {
		r.fault(name, "must be "+kind)
		return v, false
	}
	return v, true
}

func (r *reader) fault(name, why string) {
	if r.err == nil {
		r.err = &lock.Error{Code: lock.CodeInvalidArgument, Operation: lock.OpAcquire, Detail: r.prefix + name + " " + why}
	}
}

func (r *reader) text(name string) string {
	v, ok := r.get(name, safejs.TypeString, "a string")
	if !ok {
		return ""
	}
	s, _ := v.String()
	return s
}

// choice is a text that is never empty: the empty string would mean the default.
func (r *reader) choice(name string) string {
	s := r.text(name)
	if v, err := r.v.Get(name); err == nil && s == "" && v.Type() == safejs.TypeString {
		r.fault(name, "must not be empty")
	}
	return s
}

func (r *reader) flag(name string) bool {
	v, ok := r.get(name, safejs.TypeBoolean, "a boolean")
	b, _ := v.Truthy()
	return ok && b
}

// flagOr is flag with another default than false.
func (r *reader) flagOr(name string, absent bool) bool {
	if v, err := r.v.Get(name); err != nil || v.IsUndefined() {
		return absent
	}
	return r.flag(name)
}

// whole returns a whole number; 0 if it is absent.
func (r *reader) whole(name string) int {
	n := r.number(name, 0)
	if n != math.Trunc(n) {
		r.fault(name, "must be a whole number")
	}
	return int(min(n, 1<<53))
}

// number returns a finite number that is not negative; zero replaces 0, because 0 in the Go options means their
// default.
func (r *reader) number(name string, zero float64) float64 {
	v, ok := r.get(name, safejs.TypeNumber, "a number")
	if !ok {
		return 0
	}
	n, _ := v.Float()
	switch {
	case math.IsNaN(n) || math.IsInf(n, 0):
		r.fault(name, "must be finite")
	case n < 0:
		r.fault(name, "must not be negative")
	case n == 0 && zero == 0:
		r.fault(name, "must be positive")
	case n == 0:
		return zero
	}
	return n
}

// longest is the longest time that differs from forever: about 31 years.
const longest = 1e12 // ms

func (r *reader) duration(name string, zero time.Duration) time.Duration {
	ms := r.number(name, float64(zero))
	if ms == float64(zero) {
		return zero
	}
	return time.Duration(min(ms, longest) * float64(time.Millisecond))
}

func acquireOptions(v safejs.Value) (lock.AcquireOptions, error) {
	r := reader{v: v}
	o := r.acquire()
	return o, r.err
}

func withOptions(v safejs.Value) (lock.WithOptions, error) {
	r := reader{v: v}
	o := lock.WithOptions{AcquireOptions: r.acquire()}
	if release, ok := r.get("releaseOnError", safejs.TypeBoolean, "a boolean"); ok {
		yes, _ := release.Truthy()
		o.KeepOnError = !yes
	}
	return o, r.err
}

func (r *reader) acquire() lock.AcquireOptions {
	if r.v.IsUndefined() {
		r.v = safejs.Safe(emptyObject())
	}
	return lock.AcquireOptions{
		Path:              r.path("path"),
		Paths:             r.paths("paths"),
		Slots:             r.whole("slots"),
		LeaseID:           r.text("leaseId"),
		Mode:              lock.Mode(r.choice("mode")),
		TTL:               r.duration("ttlMs", 0),
		HeartbeatInterval: r.duration("heartbeatIntervalMs", 0),
		Timeout:           r.duration("timeoutMs", lock.NoWait),
		Backoff:           r.backoff(),
		PreferredStrategy: lock.Strategy(r.choice("preferredStrategy")),
		IfAvailable:       r.flag("ifAvailable"),
		Steal:             r.flag("steal"),
	}
}

// items reads an array; nil if it is absent.
func (r *reader) items(name string, visit func(item *reader)) (there bool) {
	list, ok := r.get(name, safejs.TypeObject, "an array")
	if !ok {
		return false
	}
	n, err := list.Length()
	if err != nil {
		r.fault(name, "must be an array")
	}
	for i := range n {
		visit(&reader{v: list, prefix: strconv.Itoa(i)})
	}
	return true
}

// path reads an array of texts.
func (r *reader) path(name string) []string {
	path := []string{}
	r.items(name, func(item *reader) {
		path = append(path, item.text(item.prefix))
		r.fail(item.err, name, "must be an array of strings")
	})
	return path
}

// paths reads an array of arrays of texts; nil if it is absent.
func (r *reader) paths(name string) (paths [][]string) {
	if r.items(name, func(item *reader) {
		paths = append(paths, item.path(item.prefix))
		r.fail(item.err, name, "must be an array of arrays of strings")
	}) && paths == nil {
		paths = [][]string{}
	}
	return paths
}

func (r *reader) fail(err error, name, why string) {
	if err != nil {
		r.fault(name, why)
	}
}

func (r *reader) backoff() lock.Backoff {
	v, ok := r.get("backoff", safejs.TypeObject, "an object")
	if !ok {
		return lock.Backoff{}
	}
	inner := reader{v: v, prefix: "backoff."}
	b := lock.Backoff{
		InitialDelay: inner.duration("initialDelayMs", 0),
		Multiplier:   inner.number("multiplier", 0),
		MaxDelay:     inner.duration("maxDelayMs", 0),
		Jitter:       inner.number("jitter", lock.NoJitter),
		MaxRetries:   lock.Unlimited,
	}
	if n := inner.number("maxRetries", lock.Unlimited); n != lock.Unlimited {
		if n != math.Trunc(n) {
			inner.fault("maxRetries", "must be a whole number")
		}
		b.MaxRetries = int(min(n, math.MaxInt32))
	}
	if r.err == nil {
		r.err = inner.err
	}
	return b
}

// lockRequest reads the arguments of holdfast.locks.request.
func lockRequest(v safejs.Value) (lock.Request, error) {
	r := reader{v: v}
	request := lock.Request{
		Wants:       []lock.Want{{Name: r.text("name"), Mode: lock.Mode(r.text("mode"))}},
		IfAvailable: r.flag("ifAvailable"),
		Steal:       r.flag("steal"),
		Asked:       int64(r.number("asked", 0) * 1000),
	}
	return request, r.err
}
