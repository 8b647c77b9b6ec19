//go:build js && wasm

// Command locker locks places through the Go Locker over navigator.locks, with no lease on top:
// one of the contenders of the benchmark.
package main

import (
	"context"
	"errors"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/jsbridge"
	"github.com/holdfast-dev/holdfast/lock"
)

func main() {
	if err := run(); err != nil {
		panic(err)
	}
}

// run hands a function cycle(what, n) to the script that started it, and serves it forever.
func run() error {
	boot, err := safejs.Global().Get("benchLocker")
	if err != nil {
		return err
	}
	port, err := boot.Get("port")
	if err != nil {
		return err
	}
	if err := jsbridge.Open(port); err != nil {
		return err
	}
	exports := jsbridge.Exports{Reason: func(err error) any { return err.Error() }}
	cycle, err := exports.Func(cycle)
	if err != nil {
		return err
	}
	if _, err := boot.Call("ready", cycle); err != nil {
		return err
	}
	select {}
}

var web = lock.Backend{Strategy: lock.WebLock, Resource: "bench-locker", Locker: jsbridge.NewWebLocks()}

var contenders = map[string]lock.AcquireOptions{
	"path":            {Path: lock.User("u1").Account("a1").Resource("r1")},
	"slot":            {Path: []string{"pool"}, Slots: 3},
	"slot of project": {Slots: 3},
}

// cycle locks and unlocks n times.
func cycle(args []safejs.Value) (any, error) {
	what, err := args[0].String()
	if err != nil {
		return nil, err
	}
	n, err := args[1].Int()
	if err != nil {
		return nil, err
	}
	opts, ok := contenders[what]
	if !ok {
		return nil, errors.New("no such contender: " + what)
	}
	opts.IfAvailable = true
	ctx := context.Background()
	for range n {
		grant, err := lock.RequestPlaces(ctx, web, opts)
		if err != nil {
			return nil, err
		}
		if err := grant.Release(ctx); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
