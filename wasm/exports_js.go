//go:build js && wasm

package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/jsbridge"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/wasm/options"
)

// method is one export: ctx ends with the caller's AbortSignal, callback is a function of the page that returns a
// promise.
type method func(s *service, ctx context.Context, arg *options.Reader, callback safejs.Value) (any, error)

// methods are the methods that the facade can call. The names are those of protocol.ts.
var methods = map[string]method{
	"acquire": (*service).acquire,
	"renew":   (*service).renew,
	"release": (*service).release,
	"with":    (*service).with,
	"request": (*service).request,
	"query":   (*service).query,
	"inspect": (*service).inspect,
	"close":   (*service).close,
}

func (s *service) export() (map[string]any, error) {
	calls := map[string]func(args []safejs.Value) (any, error){ // their argument is an object: it contains more than options
		"open":   func(args []safejs.Value) (any, error) { return nil, serve(args[0]) },
		"answer": s.answer,
	}
	for name, m := range methods {
		calls[name] = func(args []safejs.Value) (any, error) { return s.call(m, args) }
	}
	exports := make(map[string]any)
	for name, call := range calls {
		f, err := s.exports.Func(call)
		if err != nil {
			return nil, err
		}
		exports[name] = f
	}
	return exports, nil
}

// call runs a method with the arguments (arg, signal, callback). The argument is the JSON text of an object.
func (s *service) call(m method, args []safejs.Value) (any, error) {
	for len(args) < 3 {
		args = append(args, safejs.Undefined())
	}
	ctx, stop, err := jsbridge.WithSignal(context.Background(), args[1])
	if err != nil {
		return nil, err
	}
	defer stop()
	text := ""
	if args[0].Type() == safejs.TypeString {
		text, _ = args[0].String()
	}
	arg, err := options.Read(text)
	if err != nil {
		return nil, err
	}
	return m(s, ctx, arg, args[2])
}

// afterEvents delivers the events of an operation to the facade before its result.
func (s *service) afterEvents(value any, err error) (any, error) {
	_ = s.manager.FlushEvents(context.Background())
	return value, err
}

func (s *service) acquire(ctx context.Context, arg *options.Reader, _ safejs.Value) (any, error) {
	opts := arg.Acquire()
	ctx = s.within(ctx, arg)
	if err := arg.Err(); err != nil {
		return nil, err
	}
	lease, err := s.manager.Acquire(ctx, opts)
	if err != nil {
		return s.afterEvents(nil, err)
	}
	return s.afterEvents(encodeLease(lease), nil)
}

// within returns a context that carries the lease named as within, and the number of locks that the page holds already.
func (s *service) within(ctx context.Context, arg *options.Reader) context.Context {
	return jsbridge.Lent(lock.Within(ctx, s.outer(arg)), arg.Whole("lent"))
}

// outer returns the lease named as within; the zero lease is none.
func (s *service) outer(arg *options.Reader) lock.Lease {
	id := arg.Text("within")
	lease, ok := s.manager.Lease(id)
	if id != "" && !ok {
		arg.Fault("within", "must be a lease that is still held")
	}
	return lease
}

func (s *service) renew(ctx context.Context, arg *options.Reader, _ safejs.Value) (any, error) {
	lease, err := s.lease(arg)
	if err != nil {
		return nil, err
	}
	if lease, err = lease.Renew(ctx); err != nil {
		return s.afterEvents(nil, err)
	}
	return s.afterEvents(encodeLease(lease), nil)
}

func (s *service) release(ctx context.Context, arg *options.Reader, _ safejs.Value) (any, error) {
	force := arg.Flag("force", false)
	lease, err := s.lease(arg)
	if errors.Is(err, lock.ErrLost) {
		return nil, nil // it has ended already, as the caller wants
	}
	if err != nil {
		return nil, err
	}
	return s.afterEvents(nil, lease.ReleaseWith(ctx, lock.ReleaseOptions{Force: force}))
}

// lease returns the lease named as leaseId.
func (s *service) lease(arg *options.Reader) (lock.Lease, error) {
	lease, ok := s.manager.Lease(arg.Text("leaseId"))
	if err := arg.Err(); err != nil {
		return lock.Lease{}, err
	}
	if !ok {
		return lock.Lease{}, &lock.Error{Code: lock.CodeLost, Operation: lock.OpRenew, Detail: "this lease has ended; acquire it again"}
	}
	return lease, nil
}

func (s *service) with(ctx context.Context, arg *options.Reader, callback safejs.Value) (any, error) {
	opts := arg.With()
	ctx = s.within(ctx, arg)
	if err := arg.Err(); err != nil {
		return nil, err
	}
	return s.afterEvents(nil, s.manager.With(ctx, func(_ context.Context, l lock.Lease) error {
		// Not under the caller's signal: the signal ends only the waiting. An executor that already runs keeps the lock
		// until it has ended.
		failed, stop := failure(l)
		defer stop()
		return jsbridge.Run(failed, callback, encodeLease(l))
	}, opts))
}

// failure returns a context that ends when the lease ends by a failure. An executor that releases its own lease may go
// on.
func failure(l lock.Lease) (context.Context, func()) {
	ctx, end := context.WithCancelCause(context.Background())
	stop := context.AfterFunc(l.Context(), func() {
		if err := l.Err(); err != nil {
			end(err)
		}
	})
	return ctx, func() { stop(); end(nil) }
}

// request locks a name: it reports to the facade whether the lock was granted, and holds it until the callback has
// ended.
func (s *service) request(ctx context.Context, arg *options.Reader, callback safejs.Value) (any, error) {
	r := arg.Request()
	if err := arg.Err(); err != nil {
		return nil, err
	}
	name := r.Wants[0].Name
	grant, err := s.locker.Request(ctx, r)
	if errors.Is(err, lock.ErrDenied) {
		return nil, jsbridge.Run(context.Background(), callback, false)
	}
	if err != nil && ctx.Err() != nil {
		return nil, &lock.Error{Code: lock.CodeAborted, Operation: lock.OpAcquire, Resource: name}
	}
	if err != nil {
		return nil, err
	}
	held := untilLost{context.Background(), grant, &lock.Error{Code: lock.CodeLost, Operation: lock.OpRenew, Resource: name}}
	err = jsbridge.Run(held, callback, true)
	return nil, errors.Join(err, grant.Release(context.Background()))
}

// lookLimit bounds how long it may take to find the holders and the waiters of the project.
const lookLimit = 10 * time.Second

var errLook = &lock.Error{Code: lock.CodeTimeout, Operation: lock.OpAcquire,
	Detail: "the browser does not tell who holds and who waits; close all tabs of this site, or restart the browser"}

// inspect reports the holders and the waiters, as the declaration file describes them.
func (s *service) inspect(ctx context.Context, _ *options.Reader, _ safejs.Value) (any, error) {
	ctx, stop := context.WithTimeoutCause(ctx, lookLimit, errLook)
	defer stop()
	holders, waiters, err := s.manager.Inspect(ctx)
	if err != nil {
		return nil, err
	}
	return encodeState(holders, waiters), nil
}

// query needs no limit: only the file of locks is asked through Go, and it has one.
func (s *service) query(ctx context.Context, _ *options.Reader, _ safejs.Value) (any, error) {
	state, err := s.state(ctx)
	return encodeSnapshot(state), err
}

// closeLimit bounds close if the page does not: the program ends even if a mechanism does not answer.
const closeLimit = 10 * time.Second

var errClose = &lock.Error{Code: lock.CodeReleaseFailed, Operation: lock.OpRelease, Err: context.DeadlineExceeded,
	Detail: "the browser did not take everything back in time; what is left is free when this page is closed"}

// close ends everything; run returns after it.
func (s *service) close(ctx context.Context, arg *options.Reader, _ safejs.Value) (any, error) {
	defer s.once.Do(func() { close(s.closed) })
	ctx, stop := context.WithTimeoutCause(ctx, cmp.Or(arg.Duration("limitMs", 0), closeLimit), errClose)
	defer stop()
	return nil, errors.Join(s.manager.Close(ctx), s.end(ctx))
}

// untilLost is a context that ends when a grant is stolen. It needs no goroutine.
type untilLost struct {
	context.Context
	grant lock.Grant
	why   error
}

func (u untilLost) Done() <-chan struct{} { return u.grant.Lost() }

func (u untilLost) Err() error {
	select {
	case <-u.grant.Lost():
		return u.why
	default:
		return nil
	}
}
