package locks

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/metrics"
)

// Table is one server's access to the lock table. Its methods may be called from any goroutine.
type Table struct {
	store   Store
	config  Config
	mirror  *mirror
	stop    context.CancelFunc
	running sync.WaitGroup

	heartbeats chan heartbeat
	later      chan func(context.Context) error
	closed     <-chan struct{}

	instance turn
	lease    *kv.Lease // ends the tickets of this server if it dies
	stubs    countdown
}

// Store is the part of the store that a table needs. *[kv.Store] implements it.
type Store interface {
	Get(ctx context.Context, key string) (kv.Entry, int64, error)
	GetAt(ctx context.Context, key string, revision int64) (kv.Entry, error)
	Each(ctx context.Context, prefix string, limit int64, f func([]kv.Entry) error) (int64, error)
	ReadWatched(ctx context.Context, prefix string, limit int64, load func([]kv.Entry, int64), f func([]kv.Change) error) error
	Commit(ctx context.Context, txn kv.Txn) (kv.Result, error)
	CommitEach(ctx context.Context, txns []kv.Txn) ([]bool, error)
	Watch(ctx context.Context, prefix string, after int64, f func([]kv.Change) error) error
	Lease(ctx context.Context, ttl time.Duration) (*kv.Lease, error)
	Countdown(ctx context.Context, ttl time.Duration) (*kv.Lease, error)
}

// Config configures a [Table].
type Config struct {
	// Record returns the operations that record an event of the document in the transaction of its change. Nil
	// records nothing.
	Record func(document string, c Change) []kv.Op
	// Ended is called with the revision when the exclusive lease of a document has ended. It may be nil.
	Ended func(document string, revision int64)
	// ReservedForLeases reports whether the store has no space for further leases. Nil means that it always has.
	ReservedForLeases func() bool
	// Metrics and Log may be nil.
	Metrics *metrics.Metrics
	Log     *slog.Logger
	// InstanceTTL is how long the places in the queue of a dead server remain. Zero means 5 s.
	InstanceTTL time.Duration
	// MaxHeld limits the leases of one holder, MaxWaiting its waiting requests, and MaxTickets its tickets that the
	// store remembers. 0 means no limit. The table counts from this server's view, so concurrent requests may exceed
	// a limit by a few.
	MaxHeld, MaxWaiting, MaxTickets int
	// SingleServer means that no other server uses the store. Places in the queue that exist at the start then belong to
	// nobody.
	SingleServer bool
}

// Change is a change of a document's lock.
type Change struct {
	Locked bool
	Reason Reason // set if not Locked
	Lease  Lease
	By     Holder // who has broken it
	Why    string
}

// Reason is the reason why a lock ended.
type Reason string

// The reasons.
const (
	Released    Reason = "released"
	Expired     Reason = "expired"
	Broken      Reason = "broken"      // by somebody else
	Transferred Reason = "transferred" // released while others waited; the first of them gets it
)

// Open begins to follow the table. [Table.Close] ends that. It releases no lock.
func Open(ctx context.Context, store Store, c Config) (*Table, error) {
	if c.Record == nil {
		c.Record = func(string, Change) []kv.Op { return nil }
	}
	if c.Ended == nil {
		c.Ended = func(string, int64) {}
	}
	if c.Metrics == nil {
		c.Metrics = metrics.New(nil)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.InstanceTTL == 0 {
		c.InstanceTTL = 5 * time.Second
	}
	t := &Table{store: store, config: c, mirror: newMirror(), heartbeats: make(chan heartbeat), later: make(chan func(context.Context) error),
		instance: newTurn(), stubs: countdown{turn: newTurn()}}
	if c.SingleServer {
		if _, err := store.Commit(ctx, kv.Txn{Then: []kv.Op{kv.DeleteUnder(waitPrefix)}}); err != nil {
			return nil, err
		}
	}
	t.mirror.shown = func(age time.Duration) { c.Metrics.WatchLag.Observe(age.Seconds()) }
	following, stop := context.WithCancel(context.Background())
	t.stop, t.closed = stop, following.Done()
	t.running.Go(func() { t.commitBeats(following) })
	t.running.Go(func() { t.tryLater(following) })
	read := make(chan error, 1)
	t.running.Go(func() {
		t.follow(following, func(err error) {
			select {
			case read <- err: // the first one
			default:
			}
		})
	})
	var err error
	select {
	case err = <-read:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		stop()
		t.running.Wait()
		return nil, err
	}
	return t, nil
}

// Close stops following. Waiting requests continue until their own contexts end.
func (t *Table) Close() {
	t.stop()
	t.running.Wait()
	_ = t.instance.take(context.Background())
	defer t.instance.leave()
	if t.lease != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = t.lease.Close(ctx) // otherwise it expires by itself
	}
}

// readPage is the number of entries per read. An external etcd counts all following entries for each page, so few large
// pages cost less than many small ones.
const readPage = 50_000

// follow keeps the mirror like the store until ctx ends, and reports the outcome of each attempt to read the store. It reads the store again
// when its watch was interrupted for longer than the store's history.
func (t *Table) follow(ctx context.Context, report func(error)) {
	for ctx.Err() == nil {
		err := t.readAndWatch(ctx, report)
		if errors.Is(err, kv.ErrCompacted) {
			err = t.readWatched(ctx, report)
		}
		if !errors.Is(err, kv.ErrCompacted) {
			report(err)
		}
		_ = wait.For(ctx, 100*time.Millisecond)
	}
}

// readAndWatch loads the mirror as of one revision, and applies the changes after it until the watch fails.
func (t *Table) readAndWatch(ctx context.Context, report func(error)) error {
	revision, err := t.read(ctx)
	if err != nil {
		return err
	}
	report(nil)
	return t.store.Watch(ctx, prefix, revision, t.apply)
}

// read loads the mirror as of one revision, which it returns.
func (t *Table) read(ctx context.Context) (int64, error) {
	l := t.mirror.load()
	revision, err := t.store.Each(ctx, prefix, readPage, func(entries []kv.Entry) error {
		l.add(entries, time.Now())
		return nil
	})
	if err == nil {
		t.take(l, revision)
	}
	return revision, err
}

// readWatched is readAndWatch for a store that is nearly full: its history is compacted every ten seconds, and reading and loading a million
// locks takes longer. It needs more memory, but no revision that stays.
func (t *Table) readWatched(ctx context.Context, report func(error)) error {
	return t.store.ReadWatched(ctx, prefix, readPage, func(all []kv.Entry, revision int64) {
		l := t.mirror.load()
		l.add(all, time.Now())
		t.take(l, revision)
		report(nil)
	}, t.apply)
}

func (t *Table) take(l *loading, revision int64) {
	t.mirror.take(l, revision, time.Now())
	t.gauge()
	t.removeOrphans()
}

func (t *Table) apply(changes []kv.Change) error {
	t.mirror.apply(changes, time.Now())
	t.gauge()
	t.removeOrphans()
	return nil
}

// removeOrphans removes the places in the queue that the store made after their requests had left this server.
func (t *Table) removeOrphans() {
	for _, orphan := range t.mirror.visits.left() {
		t.tryUntilDone(func(ctx context.Context) error { return t.takeOut(ctx, orphan) })
	}
}

func (t *Table) gauge() {
	t.mirror.mu.Lock()
	n := len(t.mirror.held)
	t.mirror.mu.Unlock()
	t.config.Metrics.Locks.Set(float64(n))
}

// instanceLease returns the lease to which this server's tickets are bound.
func (t *Table) instanceLease(ctx context.Context) (*kv.Lease, error) {
	if err := t.instance.take(ctx); err != nil {
		return nil, err
	}
	defer t.instance.leave()
	if t.lease != nil {
		select {
		case <-t.lease.Lost():
		default:
			return t.lease, nil
		}
	}
	lease, err := t.store.Lease(ctx, t.config.InstanceTTL)
	if err == nil {
		t.lease = lease
	}
	return lease, err
}
