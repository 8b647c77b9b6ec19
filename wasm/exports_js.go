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
)

// method is one export: ctx ends with the caller's AbortSignal, callback is a function of the page that returns a
// promise.
type method func(s *service, ctx context.Context, arg, callback safejs.Value) (any, error)

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
	exports := make(map[string]any)
	for name, m := range methods {
		f, err := s.exports.Func(func(args []safejs.Value) (any, error) { return s.call(m, args) })
		if err != nil {
			return nil, err
		}
		exports[name] = f
	}
	return exports, nil
}

// call runs a method with the arguments (arg, signal, callback).
func (s *service) call(m method, args []safejs.Value) (any, error) {
	for len(args) < 3 {
		args = append(args, safejs.Undefined())
	}
	ctx, stop, err := jsbridge.WithSignal(context.Background(), args[1])
	if err != nil {
		return nil, err
	}
	defer stop()
	return m(s, ctx, args[0], args[2])
}

// told delivers the events of an operation to the facade before its result.
func (s *service) told(value any, err error) (any, error) {
	_ = s.manager.Flush(context.Background())
	return value, err
}

func (s *service) acquire(ctx context.Context, arg, _ safejs.Value) (any, error) {
	opts, err := acquireOptions(arg)
	if err == nil {
		ctx, err = s.within(ctx, arg)
	}
	if err != nil {
		return nil, err
	}
	lease, err := s.manager.Acquire(ctx, opts)
	if err != nil {
		return s.told(nil, err)
	}
	return s.told(jsbridge.JSON(encodeLease(lease)), nil)
}

// within returns a context that carries the lease named as within, and the number of locks that the page holds already.
func (s *service) within(ctx context.Context, arg safejs.Value) (context.Context, error) {
	r := reader{v: arg}
	ctx = jsbridge.Lent(ctx, r.whole("lent"))
	id := r.text("within")
	if id == "" {
		return ctx, r.err
	}
	lease, ok := s.manager.Lease(id)
	if !ok {
		r.fault("within", "must be a lease that is still held")
	}
	return lock.Within(ctx, lease), r.err
}

func (s *service) renew(ctx context.Context, id, _ safejs.Value) (any, error) {
	lease, err := s.lease(id)
	if err != nil {
		return nil, err
	}
	if lease, err = lease.Renew(ctx); err != nil {
		return s.told(nil, err)
	}
	return s.told(jsbridge.JSON(encodeLease(lease)), nil)
}

func (s *service) release(ctx context.Context, arg, _ safejs.Value) (any, error) {
	r := reader{v: arg}
	force := r.flag("force")
	id, _ := arg.Get("leaseId")
	if r.err != nil {
		return nil, r.err
	}
	lease, err := s.lease(id)
	if errors.Is(err, lock.ErrLost) {
		return nil, nil // it has ended already, as the caller wants
	}
	if err != nil {
		return nil, err
	}
	return s.told(nil, lease.ReleaseWith(ctx, lock.ReleaseOptions{Force: force}))
}

func (s *service) lease(id safejs.Value) (lock.Lease, error) {
	text, err := id.String()
	if err != nil {
		return lock.Lease{}, err
	}
	lease, ok := s.manager.Lease(text)
	if !ok {
		return lock.Lease{}, &lock.Error{Code: lock.CodeLost, Operation: lock.OpRenew, Detail: "this lease has ended; acquire it again"}
	}
	return lease, nil
}

func (s *service) with(ctx context.Context, arg, callback safejs.Value) (any, error) {
	opts, err := withOptions(arg)
	if err == nil {
		ctx, err = s.within(ctx, arg)
	}
	if err != nil {
		return nil, err
	}
	return s.told(nil, s.manager.With(ctx, func(_ context.Context, l lock.Lease) error {
		// Not under the caller's signal: the signal ends only the waiting. An executor that already runs keeps the lock
		// until it has ended.
		failed, stop := failure(l)
		defer stop()
		return jsbridge.Run(failed, callback, jsbridge.JSON(encodeLease(l)))
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
func (s *service) request(ctx context.Context, arg, callback safejs.Value) (any, error) {
	r, err := lockRequest(arg)
	if err != nil {
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

// lookLimit bounds how long it may take to find the holders and the waiters.
const lookLimit = 10 * time.Second

var errLook = &lock.Error{Code: lock.CodeTimeout, Operation: lock.OpAcquire,
	Detail: "the browser does not tell who holds and who waits; close all tabs of this site, or restart the browser"}

// inspect reports the holders and the waiters, as the declaration file describes them.
func (s *service) inspect(ctx context.Context, _, _ safejs.Value) (any, error) {
	ctx, stop := context.WithTimeoutCause(ctx, lookLimit, errLook)
	defer stop()
	holders, waiters, err := s.manager.Inspect(ctx)
	if err != nil {
		return nil, err
	}
	return jsbridge.JSON(encodeState(holders, waiters)), nil
}

func (s *service) query(ctx context.Context, _, _ safejs.Value) (any, error) {
	ctx, stop := context.WithTimeoutCause(ctx, lookLimit, errLook)
	defer stop()
	snapshot, err := s.state(ctx)
	if err != nil {
		return nil, err
	}
	return jsbridge.JSON(encodeSnapshot(snapshot)), nil
}

// closeLimit bounds close if the page does not: the program ends even if a mechanism does not answer.
const closeLimit = 10 * time.Second

var errClose = &lock.Error{Code: lock.CodeReleaseFailed, Operation: lock.OpRelease, Err: context.DeadlineExceeded,
	Detail: "the browser did not take everything back in time; what is left is free when this page is closed"}

// close ends everything; run returns after it.
func (s *service) close(ctx context.Context, limit, _ safejs.Value) (any, error) {
	defer s.once.Do(func() { close(s.closed) })
	r := reader{v: limit}
	ctx, stop := context.WithTimeoutCause(ctx, cmp.Or(r.duration("limitMs", 0), closeLimit), errClose)
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
