//go:build js && wasm

package jsbridge

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/lock"
)

// WebLocks is the [lock.Locker] over navigator.locks. Its grants hold between all tabs and workers of one origin, and
// the browser releases them when the tab or worker ends.
type WebLocks struct {
	missing error // the reason why there are no Web Locks
}

type lentKey struct{}

// Lent returns a context for an acquisition whose locks the page holds already, under this number. The first request of
// the acquisition gets them at once if it asks for just these; otherwise they are released. 0 stands for none.
func Lent(ctx context.Context, number int) context.Context {
	if number == 0 {
		return ctx
	}
	return context.WithValue(ctx, lentKey{}, number)
}

// NewWebLocks returns the Locker of this page or worker. Without Web Locks, every request fails with
// ErrWebLockUnsupported and the reason.
func NewWebLocks() *WebLocks {
	var manager safejs.Value
	navigator, err := safejs.Global().Get("navigator")
	if err == nil {
		manager, err = navigator.Get("locks")
	}
	if err == nil && manager.Type() == safejs.TypeObject {
		return &WebLocks{}
	}
	return &WebLocks{missing: &lock.Error{Code: lock.CodeWebLockUnsupported, Operation: lock.OpAcquire, Detail: whyMissing()}}
}

// Missing returns the reason why there are no Web Locks here, or nil.
func (w *WebLocks) Missing() error { return w.missing }

func whyMissing() string {
	secure, err := safejs.Global().Get("isSecureContext")
	if ok, _ := secure.Truthy(); err == nil && !ok {
		return "browsers offer Web Locks to secure pages only; serve this page over https or from localhost"
	}
	return "this browser has no Web Locks; Chrome 69, Firefox 96 and Safari 15.4 were the first to have them"
}

// Request implements [lock.Locker].
func (w *WebLocks) Request(ctx context.Context, r lock.Request) (lock.Grant, error) {
	if w.missing != nil {
		return nil, w.missing
	}
	g := &webGrant{lost: make(chan struct{})}
	if names, shared, ok := together(r); ok {
		if err := ask(ctx, g, "lockAll", names, shared); err != nil {
			_ = g.Release(context.WithoutCancel(ctx))
			return nil, err
		}
		return g, nil
	}
	for _, want := range r.Wants {
		if err := w.request(ctx, want, r, g); err != nil {
			_ = g.Release(context.WithoutCancel(ctx))
			return nil, err
		}
	}
	return g, nil
}

// request adds one name to the grant.
func (w *WebLocks) request(ctx context.Context, want lock.Want, r lock.Request, g *webGrant) error {
	flags, err := flagsOf(ctx, want, r)
	if err != nil {
		return err
	}
	return ask(ctx, g, "lock", want.Name, flags)
}

// together encodes a request of several names that the browser can be asked for at once. Such a request does not wait,
// so its order has no effect, and it may deny others at most one name, which it gives back at once.
func together(r lock.Request) (names string, shared int, ok bool) {
	exclusive := 0
	for i, w := range r.Wants {
		if i > 0 {
			names += "\x00"
		}
		names += w.Name
		if w.Mode == lock.Shared {
			shared |= 1 << i
		} else {
			exclusive++
		}
	}
	n := len(r.Wants)
	return names, shared, r.IfAvailable && !r.Steal && n > 1 && n < 31 && exclusive <= 1 && strings.Count(names, "\x00") == n-1
}

// ask calls a method of port.js that answers once, and waits for the answer.
func ask(ctx context.Context, g *webGrant, method, names string, flags int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p := &pending{grant: g, answer: make(chan error, 1)}
	p.id = g.scope.number(p.report)
	number, _ := ctx.Value(lentKey{}).(int)
	if number != 0 {
		g.lent = p.id
	}
	if _, err := port.Call(method, p.id, names, flags, number); err != nil {
		return refusal(err)
	}
	select {
	case err := <-p.answer:
		return err
	case <-ctx.Done():
		if p.abandon() {
			p.release()
			return context.Cause(ctx)
		}
		return <-p.answer // it arrived at the same moment; the caller gives it back
	}
}

func flagsOf(ctx context.Context, want lock.Want, r lock.Request) (flags int, err error) {
	switch want.Mode {
	case lock.Exclusive:
	case lock.Shared:
		flags |= lockShared
	default:
		return 0, &lock.Error{Code: lock.CodeInvalidArgument, Operation: lock.OpAcquire, Detail: `mode must be "exclusive" or "shared"`}
	}
	if r.IfAvailable {
		flags |= lockIfAvailable
	}
	if r.Steal {
		flags |= lockSteal
	}
	if ctx.Done() != nil && !r.IfAvailable && !r.Steal { // other requests need no signal
		flags |= lockAbortable
	}
	return flags, nil
}

// Query implements [lock.Locker].
func (w *WebLocks) Query(ctx context.Context) (lock.Snapshot, error) {
	if w.missing != nil {
		return lock.Snapshot{}, w.missing
	}
	promise, err := port.Call("query")
	if err != nil {
		return lock.Snapshot{}, refusal(err)
	}
	state, err := Await(ctx, promise)
	if err != nil && ctx.Err() == nil {
		err = refusal(err)
	}
	if err != nil {
		return lock.Snapshot{}, err
	}
	var s lock.Snapshot
	if s.Held, err = infos(state, "held"); err != nil {
		return lock.Snapshot{}, err
	}
	s.Pending, err = infos(state, "pending")
	return s, err
}

func infos(state safejs.Value, list string) ([]lock.Info, error) {
	values, err := state.Get(list)
	if err != nil {
		return nil, err
	}
	n, err := values.Length()
	if err != nil {
		return nil, err
	}
	all := make([]lock.Info, n)
	for i := range all {
		v, err := values.Index(i)
		if err != nil {
			return nil, err
		}
		all[i] = lock.Info{Name: Property(v, "name"), Mode: lock.Mode(Property(v, "mode")), ClientID: Property(v, "clientId")}
	}
	return all, nil
}

// pending is one requested name. The browser answers once: with the lock, with null, or with a rejection.
type pending struct {
	id     int // the number by which port.js knows it
	grant  *webGrant
	answer chan error // capacity 1

	mu       sync.Mutex
	answered bool
}

// settle reports whether this is the first answer.
func (p *pending) settle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answered {
		return false
	}
	p.answered = true
	return true
}

// abandon reports whether the answer is still to come; it is then ignored.
func (p *pending) abandon() bool { return p.settle() }

// report handles a report of port.js.
func (p *pending) report(what int) {
	switch what {
	case lockGranted:
		if p.settle() {
			p.grant.add(p)
			p.answer <- nil
		} else {
			p.release()
		}
	case lockDenied:
		if p.settle() {
			p.answer <- lock.ErrDenied
		}
	case lockFailed: // refused, or stolen after the grant
		if p.settle() {
			p.answer <- refusal(Rejection{reason(p.id)})
		} else {
			p.grant.lose()
		}
	}
}

func (p *pending) release() { _, _ = port.Call("release", p.id) }

// webGrant is a granted request of one or more names.
type webGrant struct {
	scope Scope
	lost  chan struct{}
	lent  int // the request that the page's locks may have been for; 0: none

	mu    sync.Mutex
	locks []*pending
	gone  bool // lost is closed
}

func (g *webGrant) add(p *pending) {
	g.mu.Lock()
	g.locks = append(g.locks, p)
	g.mu.Unlock()
}

// Release implements [lock.Grant]. The browser gets the locks back a moment later, but before every later request of
// this program that does not steal.
func (g *webGrant) Release(context.Context) error {
	g.mu.Lock()
	locks := g.locks
	g.locks = nil
	g.mu.Unlock()
	for _, p := range slices.Backward(locks) {
		p.release()
	}
	g.scope.Release()
	return nil
}

// Look implements [lock.Grant]. The browser reports a steal before it answers a later request. A page that is busy reports late that
// its locks were stolen, so it is asked.
func (g *webGrant) Look(ctx context.Context, _ lock.Instant) error {
	if g.lent == 0 {
		return nil
	}
	promise, err := port.Call("look", g.lent)
	if err == nil {
		_, err = Await(ctx, promise)
	}
	return err
}

// Lost implements [lock.Grant].
func (g *webGrant) Lost() <-chan struct{} { return g.lost }

func (g *webGrant) lose() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.gone {
		g.gone = true
		close(g.lost)
	}
}
