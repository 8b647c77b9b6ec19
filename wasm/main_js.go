//go:build js && wasm

// Command wasm is the Go side of the browser package: it wires the domain to the
// browser and exports it to the facade. The facade starts it with the name of a
// global object, the boot object (see go.ts).
package main

import (
	"context"
	"errors"
	"sync"
	"syscall"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/jsbridge"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/opfs"
	"github.com/holdfast-dev/holdfast/remote"
	"github.com/holdfast-dev/holdfast/wasm/options"
)

func main() {
	if err := run(); err != nil {
		panic("holdfast: " + err.Error()) // the facade sees the end of the program and reports the error
	}
}

// run serves the facades of a page until the last one calls close.
func run() error {
	name, ok := syscall.Getenv("HOLDFAST_BOOT")
	if !ok {
		return errors.New("started without the name of its boot object")
	}
	boot, err := safejs.Global().Get(name)
	if err != nil {
		return err
	}
	if err := serve(boot); err != nil {
		return err
	}
	serving.Wait()
	jsbridge.Shutdown()
	return nil
}

// serving counts the services of this program, also those that are about to begin.
var serving sync.WaitGroup

// serve gives the facade of a boot object a service of its own, until that facade calls close. The boot objects of one
// program share the port and the files.
func serve(boot safejs.Value) (err error) {
	serving.Add(1)
	defer func() {
		if err != nil {
			serving.Done()
		}
	}()
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
	go func() {
		<-s.closed
		s.exports.Close()
		s.channel.Close()
		serving.Done()
	}()
	return nil
}

// settings are the options with which the facade was opened.
type settings struct {
	ownerID, ownerName, root, strategy string
	server, browser                    string                                // its URL, "" for none; an id of this browser
	token                              func(context.Context) (string, error) // returns the token of the user at the server; may be nil
	files                              safejs.Value                          // opens files for a program in a page
	tables                             safejs.Value                          // runs the steps over the file of locks
	writer                             safejs.Value                          // writes for AutoSave
	journals                           safejs.Value                          // writes drafts
	database                           safejs.Value                          // stores for AutoSave where files are refused
	warn                               func(resource, detail string)         // usable once the manager exists
}

// key is the name of the project among the locks and channels of its origin.
func (s settings) key() string { return "holdfast:" + s.root }

// mechanism contains the backends by which this program locks.
type mechanism struct {
	backends []lock.Backend // in the order in which they are tried
	locker   lock.Locker    // serves holdfast.locks
	state    func(context.Context) (lock.Snapshot, error)
	end      func(context.Context) error
	document *remote.Document // a document that is also locked on the server; nil without a server
}

func wire(s settings) (mechanism, error) {
	opfs.UseHelper(s.files)
	resource := opfs.Resource(s.root)
	files, err := opfs.NewFileLocks(s.root, opfs.Options{Tables: s.tables, Warn: func(detail string) { s.warn(resource, detail) }})
	if err != nil {
		return mechanism{}, err
	}
	// The browser grants the lock. The record beside it shows the holder and counts the tokens.
	locks := jsbridge.NewWebLocks()
	clock := &lock.WallTokens{Clock: lock.SystemClock{}}
	web := lock.Backend{Strategy: lock.WebLock, Resource: s.key(), Locker: locks, Records: lock.WithFallback(files, clock, s.withoutRecord)}
	file := lock.Backend{Strategy: lock.FileLock, Resource: resource, Key: s.key(), Locker: files, Records: lock.NearClock(files, clock)}
	if locks.Missing() == nil { // pages of every strategy exclude each other
		file.Locker, file.KeepsFrozen = lock.Both(locks, files), true
	}
	m := mechanism{locker: files, state: files.QuerySettled, end: files.Close}
	switch s.strategy {
	case "web-lock":
		m.locker, m.state, m.backends = web.Locker, web.Locker.Query, []lock.Backend{web}
	case "file-lock":
		m.backends = []lock.Backend{file}
	default:
		// Web Locks are tried nevertheless, so that the events say why a file is used instead.
		m.backends = []lock.Backend{web, file}
	}
	err = s.atServer(&m)
	return m, err
}

// atServer makes leases also hold on the server, if there is one.
func (s settings) atServer(m *mechanism) error {
	if s.server == "" {
		return nil
	}
	document, err := remote.DocumentID(s.root)
	if err != nil {
		return err
	}
	for i, local := range m.backends {
		m.document = remote.NewDocument(remote.Config{Server: jsbridge.NewServer(s.server), URL: s.server,
			Browser: s.browser, Document: document, Name: s.ownerName, Token: s.token, Local: local})
		m.backends[i] = m.document.Backend()
	}
	return nil
}

// withoutRecord reports that a lease goes on without a record. If the browser has no file storage at all, this is
// expected and not reported.
func (s settings) withoutRecord(err error) {
	if !errors.Is(err, opfs.ErrNoStorage) {
		s.warn(s.key(), "this lease has no record that other tabs can read: "+err.Error())
	}
}

// service is one open Holdfast.
type service struct {
	boot     safejs.Value
	settings settings
	manager  *lock.Manager
	mechanism
	editors editors
	asked   questions
	channel *jsbridge.Channel
	exports jsbridge.Exports
	closed  chan struct{}
	once    sync.Once
}

func newService(boot safejs.Value) (s *service, err error) {
	r, err := options.Read(jsbridge.Property(boot, "config"))
	if err != nil {
		return nil, err
	}
	c := settings{ownerID: r.Text("ownerId"), ownerName: r.Text("ownerName"), root: r.Text("root"), strategy: r.Text("strategy"), server: r.Text("server"), browser: r.Text("browser")}
	token := r.Flag("token", false)
	if err := r.Err(); err != nil {
		return nil, err
	}
	for name, lent := range map[string]*safejs.Value{"files": &c.files, "tables": &c.tables, "writer": &c.writer, "journals": &c.journals, "database": &c.database} {
		if *lent, err = boot.Get(name); err != nil {
			return nil, err
		}
	}
	port, err := boot.Get("port")
	if err != nil {
		return nil, err
	}
	if err := jsbridge.Open(port); err != nil {
		return nil, err
	}
	s = &service{boot: boot, closed: make(chan struct{}), editors: editors{all: make(map[int]*editor)}}
	if token {
		c.token = s.token
	}
	c.warn = func(resource, detail string) { s.manager.Warn(resource, detail) }
	s.settings = c
	s.exports.Reason = func(err error) any { return reason(err) }
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
	s.manager.SubscribeAll(s.publish)
	return s, nil
}

// publish sends events to the facade.
func (s *service) publish(events []lock.Event) {
	all := jsbridge.List(events, func(e lock.Event) jsbridge.Text { return encodeEvent(e).JSON() })
	_, _ = s.boot.Call("events", string(all))
}
