//go:build js && wasm

// Command wasm is the Go side of the browser package: it wires the domain to the
// browser and exports it to the facade. The facade starts it with one argument, the
// name of a global object, the boot object (see go.ts).
package main

import (
	"context"
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

// settings are what the facade was opened with.
type settings struct {
	ownerID, ownerName, root, strategy string
	warn                               func(resource, detail string) // once the manager is there
}

// key names the project among the locks and channels of its origin.
func (s settings) key() string { return "holdfast:" + s.root }

// mechanism is by what this program locks; wire makes it. There are two builds: one for
// browsers with Web Locks, and one, larger, that has file locks as well.
type mechanism struct {
	backends []lock.Backend // in the order in which they are tried
	locker   lock.Locker    // serves holdfast.locks
	end      func(context.Context) error
}

func webLocks(s settings) lock.Backend {
	return lock.Backend{Strategy: lock.WebLock, Resource: s.key(), Locker: jsbridge.NewWebLocks()}
}

// service is one open Holdfast.
type service struct {
	boot    safejs.Value
	manager *lock.Manager
	mechanism
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
	c := settings{ownerID: r.text("ownerId"), ownerName: r.text("ownerName"), root: r.text("root"), strategy: r.text("strategy")}
	if r.err != nil {
		return nil, r.err
	}
	port, err := boot.Get("port")
	if err != nil {
		return nil, err
	}
	if err := jsbridge.Open(port); err != nil {
		return nil, err
	}
	s := &service{boot: boot, closed: make(chan struct{})}
	c.warn = func(resource, detail string) { s.manager.Warn(resource, detail) }
	s.exports.Reason = reason
	if s.mechanism, err = wire(c); err != nil {
		return nil, err
	}
	if s.channel, err = jsbridge.NewChannel(c.key()); err != nil {
		return nil, err
	}
	s.manager, err = lock.NewManager(lock.Config{
		OwnerID:   c.ownerID,
		OwnerName: c.ownerName,
		Channel:   s.channel,
		Backends:  s.mechanism.backends,
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
