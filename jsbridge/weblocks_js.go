//go:build js && wasm

package jsbridge

import (
	"context"
	"slices"
	"sync"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/lock"
)

// WebLocks is the [lock.Locker] over navigator.locks: what it grants holds between all
// tabs and workers of one origin, and the browser gives it back when they end.
type WebLocks struct {
	manager safejs.Value
	missing error // why there is none
	keeper  Keeper
}

// NewWebLocks returns the Locker of this page or worker. Where there are no Web Locks,
// every request fails with ErrWebLockUnsupported and says why. keeper
// is told of every lock while it is held.
func NewWebLocks(keeper Keeper) *WebLocks {
	w := &WebLocks{keeper: keeper}
	navigator, err := safejs.Global().Get("navigator")
	if err == nil {
		w.manager, err = navigator.Get("locks")
	}
	if err != nil || w.manager.Type() != safejs.TypeObject {
		w.missing = &lock.Error{Code: lock.CodeWebLockUnsupported, Operation: lock.OpAcquire, Detail: whyMissing()}
	}
	return w
}

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
	g := &webGrant{keeper: w.keeper, lost: make(chan struct{})}
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
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	options := map[string]any{"mode": string(want.Mode)}
	if r.IfAvailable {
		options["ifAvailable"] = true
	}
	if r.Steal {
		options["steal"] = true
	}
	abort, err := abortable(ctx, r, options)
	if err != nil {
		return err
	}
	p := &pending{grant: g, answer: make(chan error, 1), over: make(chan struct{})}
	granted, err := g.scope.Func(p.granted)
	if err != nil {
		return err
	}
	fulfilled, err := g.scope.Func(p.fulfilled)
	if err != nil {
		return err
	}
	rejected, err := g.scope.Func(p.rejected)
	if err != nil {
		return err
	}
	promise, err := w.manager.Call("request", want.Name, options, granted)
	if err != nil {
		return refusal(err)
	}
	if _, err := promise.Call("then", fulfilled, rejected); err != nil {
		return err
	}
	select {
	case err := <-p.answer:
		return err
	case <-ctx.Done():
		if p.abandon() {
			abort()
			return context.Cause(ctx)
		}
		return <-p.answer // it came at the same moment; the caller gives it back
	}
}

// abortable adds a signal where one is allowed and needed.
func abortable(ctx context.Context, r lock.Request, options map[string]any) (abort func(), err error) {
	if ctx.Done() == nil || r.IfAvailable || r.Steal {
		return func() {}, nil
	}
	class, err := safejs.Global().Get("AbortController")
	if err != nil {
		return nil, err
	}
	controller, err := class.New()
	if err != nil {
		return nil, err
	}
	if options["signal"], err = controller.Get("signal"); err != nil {
		return nil, err
	}
	return func() { _, _ = controller.Call("abort") }, nil
}

// Query implements [lock.Locker].
func (w *WebLocks) Query(ctx context.Context) (lock.Snapshot, error) {
	if w.missing != nil {
		return lock.Snapshot{}, w.missing
	}
	promise, err := w.manager.Call("query")
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
		all[i] = lock.Info{Name: property(v, "name"), Mode: lock.Mode(property(v, "mode")), ClientID: property(v, "clientId")}
	}
	return all, nil
}

// pending is one name that was asked for. The browser answers once: with the lock,
// with null, or with a rejection.
type pending struct {
	grant  *webGrant
	answer chan error    // has one place
	over   chan struct{} // closed when the request has ended: refused, released or stolen

	mu       sync.Mutex
	answered bool
}

// settle reports whether this is the answer.
func (p *pending) settle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answered {
		return false
	}
	p.answered = true
	return true
}

// abandon reports whether the answer is still to come; it is ignored then.
func (p *pending) abandon() bool { return p.settle() }

// granted is the callback of the request. The browser keeps the lock for as long as the
// promise it returns is pending; where it returns nothing, the lock is given back.
func (p *pending) granted(args []safejs.Value) any {
	if !p.settle() {
		return nil
	}
	if first(args).IsNull() {
		p.answer <- lock.ErrDenied
		return nil
	}
	d, err := NewDeferred()
	if err != nil {
		p.answer <- err
		return nil
	}
	p.grant.add(held{d.Resolve, p.over})
	p.answer <- nil
	return d.Promise
}

// fulfilled is called when the browser has the lock back.
func (p *pending) fulfilled([]safejs.Value) any {
	close(p.over)
	return nil
}

// rejected is called when the request failed, or when a granted lock was stolen.
func (p *pending) rejected(args []safejs.Value) any {
	close(p.over)
	if p.settle() {
		p.answer <- refusal(Rejection{first(args)})
	} else {
		p.grant.lose()
	}
	return nil
}

// webGrant is a granted request of one or more names.
type webGrant struct {
	keeper Keeper
	scope  Scope
	lost   chan struct{}

	mu    sync.Mutex
	locks []held
	gone  bool // lost is closed
}

// held is one lock: what gives it back, and the news that the browser has it back.
type held struct {
	release safejs.Value
	over    <-chan struct{}
}

func (g *webGrant) add(h held) {
	g.mu.Lock()
	g.locks = append(g.locks, h)
	g.mu.Unlock()
	g.keeper.add(h.release)
}

// Release implements [lock.Grant]. It returns when the browser has the locks back: a
// later request is not denied because of them.
func (g *webGrant) Release(ctx context.Context) error {
	defer g.scope.Release()
	g.mu.Lock()
	locks := g.locks
	g.locks = nil
	g.mu.Unlock()
	var failure error
	for _, h := range slices.Backward(locks) {
		g.keeper.remove(h.release)
		if _, err := h.release.Invoke(); err != nil {
			failure = err
		}
	}
	for _, h := range locks {
		select {
		case <-h.over:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return failure
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
