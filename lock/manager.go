package lock

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock/internal/waitgraph"
)

// Backend is one mechanism that a [Manager] can use to hold its resource.
type Backend struct {
	_        [0]func() // disallow ==, whose code would be in the Wasm
	Strategy Strategy
	Resource string // shown in leases and events
	// Key is the name passed to the Locker and to Records; "" means Resource. Backends of one project that share a key
	// exclude each other, because owners compare what they hold by it.
	Key     string
	Locker  Locker
	Records Records // nil: WallTokens
	// Local, if set, is a backend of this machine. The Locker takes its lock first, and then another one under the same
	// lease. Local shows whether a holder on this machine is frozen.
	Local *Backend
	// KeepsFrozen is set if the Locker lets a frozen holder keep the lock forever, as the browser does, so that a waiter
	// has to steal it. It is always so for the strategy WebLock.
	KeepsFrozen bool
	// Remote, if set, locks places of the project and shared leases. The Locker is not asked for them then.
	Remote RemoteLocker
}

// Name returns the name that the Locker and the Records use for the resource.
func (b Backend) Name() string {
	if b.Key != "" {
		return b.Key
	}
	return b.Resource
}

// beneath returns the backend of this machine.
func (b *Backend) beneath() *Backend {
	if b.Local != nil {
		return b.Local
	}
	return b
}

// Config describes a [Manager].
type Config struct {
	OwnerID   string // default: a new UUID
	OwnerName string // shown to other owners
	// Backends in the order in which they are tried: the next one is used if one returns ErrWebLockUnsupported.
	Backends []Backend
	Clock    Clock // default: SystemClock
	// Channel, if set, lets Inspect report details of other owners instead of their mere existence.
	Channel Channel
}

// Manager acquires, keeps and releases leases of one project for one owner. Its methods may be called from any
// goroutine.
type Manager struct {
	config Config
	events *dispatcher
	tokens *WallTokens    // of leases that have no record
	work   sync.WaitGroup // everything that runs for a lease or an acquisition

	deadlocks *waitgraph.Search[Want]

	mu      sync.Mutex
	leases  map[string]*heldLease
	waiting map[*acquisition]*waiting
	closed  bool

	life context.Context // ends when Close begins; every lease ends with it
	end  context.CancelCauseFunc
}

var errClosed = errors.New("this Holdfast was closed; open a new one")

// NewManager returns a manager over the backends of c. It fails with ErrInvalidArgument if c has none.
func NewManager(c Config) (*Manager, error) {
	if len(c.Backends) == 0 {
		return nil, invalid("strategy", "leaves no way to lock")
	}
	orDefault(&c.OwnerID, NewID())
	if c.Clock == nil {
		c.Clock = SystemClock{}
	}
	c.Backends = append([]Backend(nil), c.Backends...)
	for i := range c.Backends {
		b := &c.Backends[i]
		if b.Records == nil {
			b.Records = &WallTokens{Clock: c.Clock}
		}
	}
	m := &Manager{config: c, events: newDispatcher(), leases: make(map[string]*heldLease), waiting: make(map[*acquisition]*waiting), tokens: &WallTokens{Clock: c.Clock, late: true}}
	m.life, m.end = context.WithCancelCause(context.Background())
	m.deadlocks = m.search()
	if c.Channel != nil {
		stop, err := c.Channel.Listen(m.receive)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(m.life, stop)
	}
	return m, nil
}

// OwnerID returns the id under which this manager holds and waits.
func (m *Manager) OwnerID() string { return m.config.OwnerID }

// Subscribe calls listener for every event from now on, until unsubscribe is called. The calls come in order, on a
// goroutine of their own.
func (m *Manager) Subscribe(listener func(Event)) (unsubscribe func()) {
	return m.events.subscribe(one(listener), 1)
}

// SubscribeAll is [Manager.Subscribe] for a listener whose call costs more than the work for one event: each call gets
// all events that are waiting.
func (m *Manager) SubscribeAll(listener func([]Event)) (unsubscribe func()) {
	return m.events.subscribe(listener, math.MaxInt)
}

// FlushEvents returns when every listener has handled all events so far, or with the cause when ctx ends.
func (m *Manager) FlushEvents(ctx context.Context) error { return m.events.flush(ctx) }

// AcquireResources acquires one lease on several resources of an account. Callers that acquire everything they need in
// one such call never form a deadlock, whatever the order of the ids.
func (m *Manager) AcquireResources(ctx context.Context, account AccountPath, ids []string, opts AcquireOptions) (Lease, error) {
	opts.Path, opts.Paths = nil, account.Resources(ids...)
	return m.Acquire(ctx, opts)
}

// Acquire acquires a lease. The manager renews the lease until it is released, lost or stale. ctx bounds only the
// acquisition.
//
// While another owner holds the lock, the caller keeps its place in the Locker's queue and is granted the lease as soon
// as its turn comes. The delays between lock:attempt events say how long the caller goes on waiting, not how often it
// looks.
//
// Errors match one of these:
//   - ErrInvalidArgument: nothing has happened.
//   - ErrDenied: with IfAvailable, the lock is not free.
//   - ErrTimeout: the time or the retries are spent.
//   - ErrAborted: ctx has ended, or the manager is closed.
//   - ErrUnsupported, ErrWebLockUnsupported: no backend works here.
//   - ErrReentrant: an enclosing lease holds the lock already, see [Within].
//   - ErrDeadlock: the acquisition was part of a cycle of waiters.
func (m *Manager) Acquire(ctx context.Context, opts AcquireOptions) (Lease, error) {
	opts.setDefaults()
	if err := opts.check(m.config.Backends); err != nil {
		return Lease{}, err
	}
	within, invalid := m.within(ctx)
	if invalid != nil {
		return Lease{}, invalid
	}
	if !m.begin() {
		return Lease{}, &Error{Code: CodeAborted, Operation: OpAcquire, Resource: m.config.Backends[0].Resource, Err: errClosed}
	}
	defer m.work.Done()
	lease, err := newAcquisition(m, &opts, within).run(ctx)
	if err != nil {
		return Lease{}, err
	}
	return lease, nil
}

// With runs executor under a lease and releases the lease afterwards, even when executor panics. It never releases a
// lease that it did not acquire.
//
// The executor's context carries the lease, see [Within]. It ends, with the reason as its cause, when the lease ends.
// If the lease ended before the executor returned, the error matches ErrLost or ErrStale, whatever the executor itself
// returned.
func (m *Manager) With(ctx context.Context, executor func(context.Context, Lease) error, opts WithOptions) (err error) {
	lease, err := m.Acquire(ctx, opts.AcquireOptions)
	if err != nil {
		return err
	}
	held, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(lease.held.life, func() { stop(lease.Err()) })()

	finished := false
	defer func() {
		if finished && err != nil && opts.KeepOnError {
			err = joined(lease.Err(), err)
			return
		}
		// The caller's context may have ended; the lease must be released nevertheless.
		released := lease.Release(context.WithoutCancel(ctx))
		err = joined(lease.Err(), err, released)
	}()
	err = executor(Within(held, lease), lease)
	finished = true
	return err
}

// joined joins the errors; a single error stays unchanged.
func joined(errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// Leases returns the leases held now.
func (m *Manager) Leases() []Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	leases := make([]Lease, 0, len(m.leases))
	for _, h := range m.leases {
		leases = append(leases, h.snapshot())
	}
	return leases
}

// Lease returns the present state of a lease held by this manager.
func (m *Manager) Lease(id string) (Lease, bool) {
	m.mu.Lock()
	h, ok := m.leases[id]
	m.mu.Unlock()
	if !ok {
		return Lease{}, false
	}
	return h.snapshot(), true
}

// Close ends pending acquisitions with ErrAborted, releases all leases, lets the listeners handle the resulting events
// and ends every goroutine of the manager. It returns early, with the cause, when ctx ends. Closing again does no harm.
func (m *Manager) Close(ctx context.Context) error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.end(errClosed)
	return joined(wait.Group(ctx, &m.work), m.events.close(ctx))
}

// begin registers a piece of work, unless the manager is closed.
func (m *Manager) begin() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.work.Add(1)
	return true
}

// Warn reports to the listeners a condition that an adapter noticed about the resource, such as a damaged record:
// lock:warning(fallback-degraded) with the detail.
func (m *Manager) Warn(resource, detail string) {
	m.emit(resource, "", Event{Type: EventWarning, Warning: WarnFallbackDegraded, Detail: detail})
}

func (m *Manager) emit(resource, leaseID string, e Event) Event {
	if e.At.IsZero() {
		e.At = m.config.Clock.Now().Wall
	}
	e.OwnerID = m.config.OwnerID
	e.Resource, e.LeaseID = resource, leaseID
	m.events.emit(e)
	return e
}

// fail reports a failure after which the owner cannot go on.
func (m *Manager) fail(opts *AcquireOptions, err *Error, reason ReadonlyReason) {
	m.emit(err.Resource, opts.LeaseID, Event{Type: EventError, Operation: err.Operation, Err: err})
	e := m.emit(err.Resource, opts.LeaseID, Event{Type: EventReadonlyEntered, Reason: reason, Err: err})
	if opts.OnReadonly != nil {
		m.events.notify(opts.OnReadonly, e)
	}
}
