//go:build js && wasm

// Command wasm is the Go side of the browser package: it wires the domain to the
// browser and exports it to the facade. The facade starts it with one argument, the
// name of a global object, the boot object (see boot.ts).
package main

import (
	"fmt"
	"os"
	"sync"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/jsbridge"
	"github.com/holdfast-dev/holdfast/lock"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "holdfast:", err)
		os.Exit(1)
	}
}

// run serves the facade until it calls close.
func run() error {
	if len(os.Args) < 2 {
		return fmt.Errorf("started without the name of its boot object")
	}
	boot, err := safejs.Global().Get(os.Args[1])
	if err != nil {
		return err
	}
	s, err := newService(boot)
	if err != nil {
		return err
	}
	exports, err := s.export()
	if err != nil {
		return err
	}
	if _, err := boot.Call("ready", exports); err != nil {
		return err
	}
	<-s.closed
	s.exports.Close()
	s.channel.Close()
	jsbridge.Shutdown()
	return nil
}

// service is one open Holdfast.
type service struct {
	boot    safejs.Value
	manager *lock.Manager
	locker  lock.Locker
	channel *jsbridge.Channel
	exports jsbridge.Exports
	closed  chan struct{}
	once    sync.Once
}

func newService(boot safejs.Value) (*service, error) {
	config, err := boot.Get("config")
	if err != nil {
		return nil, err
	}
	r := reader{v: config}
	ownerID, ownerName, root := r.text("ownerId"), r.text("ownerName"), r.text("root")
	if r.err != nil {
		return nil, r.err
	}
	s := &service{boot: boot, closed: make(chan struct{})}
	s.exports.Reason = reason
	held, err := boot.Get("held")
	if err != nil {
		return nil, err
	}
	s.locker = jsbridge.NewWebLocks(jsbridge.NewKeeper(held))
	key := "holdfast:" + root
	if s.channel, err = jsbridge.NewChannel(key); err != nil {
		return nil, err
	}
	s.manager, err = lock.NewManager(lock.Config{
		OwnerID:   ownerID,
		OwnerName: ownerName,
		Channel:   s.channel,
		Backends:  []lock.Backend{{Strategy: lock.WebLock, Resource: key, Locker: s.locker}},
	})
	if err != nil {
		return nil, err
	}
	s.manager.Subscribe(s.publish)
	return s, nil
}

// publish hands an event to the facade.
func (s *service) publish(e lock.Event) {
	_, _ = s.boot.Call("event", encodeEvent(e))
}
