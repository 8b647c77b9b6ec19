//go:build js && wasm

package opfs

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
)

// Options of [FileLocks]. The zero value is the default.
type Options struct {
	// TTL is how long a table of which something may be missing counts as held by a
	// client that does not say what it holds. Default: lock.DefaultTTL.
	TTL time.Duration
	// Warn, where set, is told when a table was damaged or a lease was taken over from a
	// living owner. It must not block.
	Warn  func(detail string)
	Clock lock.Clock // default: lock.SystemClock
	// Tables makes the steps: a Tables of tables.js or, for a program in a page, a Files of files.js.
	Tables safejs.Value
}

// FileLocks are the [lock.Locker] and the [lock.Records] over one `.lock` file. What
// they grant holds between all tabs and workers of one origin that use the same root.
//
// They open no file, channel or goroutine before they are first used, and none but the
// channel is left open some seconds after the last grant, waiter and record.
type FileLocks struct {
	dir     *Dir
	name    string // under which this client asks
	options Options
	bell    func() *bell

	life context.Context // ends when Close begins
	end  context.CancelCauseFunc
	work sync.WaitGroup // the keeper
	poke chan struct{}  // has one place: the table has something for this client

	waits chan struct{} // has one place: this client waits from now on

	mu        sync.Mutex
	waiters   map[string]*waiter
	grants    map[string]*grant
	questions int64            // that were asked
	answers   map[string]int64 // the number of the last that a client answered

	order chan struct{} // has one place: the operation that fills it goes on, later ones wait in the order in which they came
	turn  chan struct{} // has one place: who fills it may use what follows
	file  safejs.Value  // of the table, where opened
	open  bool
	image []byte // of the table's file as it was last
	clientState

	hook    func(step string) // for tests: called between the steps
	hearing time.Duration     // a constant but for tests
}

// clientState is what one client remembers from step to step.
type clientState struct {
	alive     alive
	own       []*entry // as the table had them last
	clients   []string // in the table
	swept     time.Duration
	doubt     bool  // the table may have more of this client
	number    int64 // of the version of the table seen last
	used      time.Duration
	seen      time.Duration // when the table was seen last
	dead      map[string]bool
	present   roll                     // who lives, where that was asked for
	strangers []string                 // who had a file, but no entry, when this client began
	met       time.Duration            // when they were first found to live
	leaving   bool                     // the next step removes this client from the table
	probed    map[string]time.Duration // when a client was last found alive
	unlikely  map[string]sighting      // expiries that cannot be right
	stalled   map[string]time.Duration
	future    sighting
}

// roll is who lived during a recovery.
type roll struct {
	until  time.Time // of the recovery
	living []string
}

// sighting is something that counts only for so long after it was first seen.
type sighting struct {
	what  int64
	since time.Duration
}

const (
	lockFile    = ".lock"
	aliveFolder = ".alive"
)

// Resource returns the name under which a project's own lock is held and shown.
func Resource(root string) string { return root + "/" + lockFile }

var errClosed = &lock.Error{Code: lock.CodeAborted, Operation: lock.OpAcquire, Detail: "these file locks were closed; open new ones"}

// NewFileLocks returns the locks of one client under the folder root. Where there is no
// file storage, every call fails with lock.ErrUnsupported and says why.
func NewFileLocks(root string, options Options) (*FileLocks, error) {
	dir, err := NewDir(root)
	if err != nil {
		return nil, err
	}
	if options.TTL == 0 {
		options.TTL = lock.DefaultTTL
	}
	if options.Clock == nil {
		options.Clock = lock.SystemClock{}
	}
	c := &FileLocks{dir: dir, options: options, poke: make(chan struct{}, 1), waits: make(chan struct{}, 1), turn: make(chan struct{}, 1), order: make(chan struct{}, 1),
		waiters: make(map[string]*waiter), grants: make(map[string]*grant), name: lock.NewID(), answers: make(map[string]int64), hearing: hearing}
	c.life, c.end = context.WithCancelCause(context.Background())
	c.bell = sync.OnceValue(func() *bell { return newBell("holdfast:"+root+":.lock", c.heard) })
	c.alive.dir = dir.Sub(aliveFolder)
	c.dead, c.probed = make(map[string]bool), make(map[string]time.Duration)
	c.unlikely, c.stalled = make(map[string]sighting), make(map[string]time.Duration)
	return c, nil
}

// waiter is a request under way.
type waiter struct {
	granted chan struct{} // has one place
	failed  chan error    // has one place
}

// Request implements [lock.Locker]. Where another client holds a name, the error matches
// both ErrFallbackConflict and ErrDenied.
func (c *FileLocks) Request(ctx context.Context, r lock.Request) (lock.Grant, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := check(r); err != nil {
		return nil, err
	}
	e := &entry{id: lock.NewID(), state: waiting, wants: slices.Clone(r.Wants), asked: r.Asked}
	w := &waiter{granted: make(chan struct{}, 1), failed: make(chan error, 1)}
	g := &grant{locks: c, id: e.id, lost: make(chan struct{})}
	c.mu.Lock()
	c.waiters[e.id], c.grants[e.id] = w, g
	c.mu.Unlock()
	err := c.enqueue(ctx, e, r)
	if err == nil {
		err = c.wait(ctx, w)
	}
	c.mu.Lock()
	delete(c.waiters, e.id)
	c.mu.Unlock()
	if err != nil {
		_ = g.Release(context.WithoutCancel(ctx)) // what is left in the table, granted or not
		return nil, err
	}
	return g, nil
}

// wait returns nil once granted; a grant that comes as ctx ends is given back.
func (c *FileLocks) wait(ctx context.Context, w *waiter) error {
	if len(w.granted) == 0 {
		select {
		case c.waits <- struct{}{}:
		default:
		}
	}
	select {
	case <-w.granted:
	case err := <-w.failed:
		return err
	case <-c.life.Done():
		return context.Cause(c.life)
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// enqueue puts the request into the table, where it may be granted at once.
func (c *FileLocks) enqueue(ctx context.Context, e *entry, r lock.Request) error {
	for {
		err := c.visit(ctx, func(s *session) error { return s.request(e, r) })
		if r.IfAvailable || !errors.Is(err, errFuture) {
			return err
		}
		if err := wait.For(ctx, slowest); err != nil {
			return err
		}
	}
}

// check reports what cannot be locked. The names are those that Web Locks refuse, so
// that both strategies lock the same.
func check(r lock.Request) error {
	for _, w := range r.Wants {
		if strings.HasPrefix(w.Name, "-") {
			return invalid("a name must not begin with \"-\"")
		}
		if w.Mode != lock.Exclusive && w.Mode != lock.Shared {
			return invalid("mode must be \"exclusive\" or \"shared\"")
		}
		if r.Steal && w.Mode != lock.Exclusive {
			return invalid("steal needs mode \"exclusive\"")
		}
	}
	if r.Steal && r.IfAvailable {
		return invalid("steal cannot be combined with ifAvailable")
	}
	return nil
}

func invalid(detail string) error {
	return &lock.Error{Code: lock.CodeInvalidArgument, Operation: lock.OpAcquire, Detail: detail}
}

// heard is called for what other clients tell. It does not block.
func (c *FileLocks) heard(words []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case len(words) == 3 && words[0] == asking:
		go c.answer(words[1], words[2])
		return
	case len(words) == 4 && words[0] == answering && words[1] == c.name:
		c.answers[words[3]], _ = strconv.ParseInt(words[2], 10, 64)
		return
	}
	for _, id := range words {
		if id == everyone || c.waiters[id] != nil || c.grants[id] != nil {
			c.wake()
			return
		}
	}
}

// wake makes the keeper look at the table.
func (c *FileLocks) wake() {
	select {
	case c.poke <- struct{}{}:
	default:
	}
}

// Close gives back everything this client holds or waits for and ends its goroutine.
// Where ctx ends first, others find out that the client is gone when its worker ends.
func (c *FileLocks) Close(ctx context.Context) error {
	c.end(errClosed)
	c.work.Wait()
	defer c.bell().close()
	if !c.take(ctx) {
		return context.Cause(ctx)
	}
	defer c.give()
	if c.alive.file == nil {
		return nil
	}
	return c.depart(ctx)
}

// grant is a granted request.
type grant struct {
	locks   *FileLocks
	id      string
	lost    chan struct{}
	losing  sync.Once
	leaving sync.Once
	err     error
}

// Lost implements [lock.Grant].
func (g *grant) Lost() <-chan struct{} { return g.lost }

// Look implements [lock.LateGrant]: who steals tells in the table, and rings a bell that may not be heard at once.
func (g *grant) Look(ctx context.Context, since lock.Instant) error {
	if !g.locks.take(ctx) {
		return context.Cause(ctx)
	}
	seen := g.locks.seen
	g.locks.give()
	if seen > since.Mono {
		return nil
	}
	return g.locks.visit(ctx, nothing)
}

func (g *grant) lose() { g.losing.Do(func() { close(g.lost) }) }

var errNotReleased = &lock.Error{Code: lock.CodeReleaseFailed, Operation: lock.OpRelease, Err: context.DeadlineExceeded,
	Detail: "the browser's file storage did not answer in time; the lock is free when it answers, or when this page is closed"}

// Release implements [lock.Grant]. Where the table cannot be written, the entry is
// removed at the next step that succeeds, or by others once this client has ended.
func (g *grant) Release(ctx context.Context) error {
	g.leaving.Do(func() {
		ctx, stop := context.WithTimeoutCause(ctx, stepLimit, errNotReleased)
		defer stop()
		g.locks.mu.Lock()
		delete(g.locks.grants, g.id)
		g.locks.mu.Unlock()
		g.err = g.locks.leave(ctx, g.id)
	})
	return g.err
}
