//go:build js && wasm

package opfs

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
)

// Options configures [FileLocks]. The zero value is the default.
type Options struct {
	// TTL is the time for which an incomplete table counts as held by clients that do not report their locks.
	// Default: lock.DefaultTTL.
	TTL time.Duration
	// Warn, if set, is called when a table was damaged or a lease was taken over from a living owner. It must not
	// block.
	Warn  func(detail string)
	Clock lock.Clock // default: lock.SystemClock
	// Tables runs the steps: a Tables of tables.js or, for a program in a page, a Files of files.js.
	Tables safejs.Value
}

// FileLocks is the [lock.Locker] and the [lock.Records] over one `.lock` file. Its grants hold between all tabs and
// workers of one origin that use the same root.
//
// It opens no file, channel or goroutine before its first use. Some seconds after the last grant, waiter and record
// only the channel stays open.
type FileLocks struct {
	end         context.CancelCauseFunc // of the life of steps
	steps       steps
	questions   questions
	maintenance maintenance
}

const (
	lockFile    = ".lock"
	aliveFolder = ".alive"
)

// Resource returns the name under which a project's own lock is held and shown.
func Resource(root string) string { return root + "/" + lockFile }

var errClosed = &lock.Error{Code: lock.CodeAborted, Operation: lock.OpAcquire, Detail: "these file locks were closed; open new ones"}

// NewFileLocks returns the locks of one client under the folder root. Without file storage every call fails with
// lock.ErrUnsupported and says why.
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
	name, oneStep := lock.NewID(), make(turn, 1)
	c := &FileLocks{
		steps: steps{
			options:     &options,
			requests:    requests{waiters: make(map[string]*waiter), grants: make(map[string]*grant)},
			turn:        oneStep,
			file:        tableFile{dir: dir, client: name, tables: options.Tables},
			liveness:    liveness{options: &options, turn: oneStep, alive: alive{dir: dir.Sub(aliveFolder)}, dead: make(map[string]bool), probed: make(map[string]time.Duration)},
			clientState: clientState{unlikely: make(map[string]sighting), stalled: make(map[string]sighting)},
		},
		questions:   questions{name: name, answerWait: answerWait, answers: make(map[string]int64)},
		maintenance: maintenance{poke: make(chan struct{}, 1), waits: make(chan struct{}, 1)},
	}
	c.steps.life, c.end = context.WithCancelCause(context.Background())
	c.steps.notifier = notifier{name: "holdfast:" + root + ":.lock", heard: c.heard}
	c.steps.begun = func() { c.maintenance.work.Go(c.maintenance.maintain) }
	c.maintenance.steps, c.maintenance.questions = &c.steps, &c.questions
	return c, nil
}

var errNotRead = &lock.Error{Code: lock.CodeTimeout, Operation: lock.OpAcquire,
	Detail: "the file of locks could not be read in time"}

// Request implements [lock.Locker]. If another client holds a name, the error matches both ErrFallbackConflict and
// ErrDenied.
func (c *FileLocks) Request(ctx context.Context, r lock.Request) (lock.Grant, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := check(r); err != nil {
		return nil, err
	}
	if r.IfAvailable {
		limited, stop := c.steps.patient(ctx, errNotRead)
		defer stop()
		ctx = limited
	}
	e := &entry{id: lock.NewID(), state: waiting, wants: slices.Clone(r.Wants), asked: r.Asked}
	g := &grant{locks: c, id: e.id, lost: make(chan struct{})}
	w := c.steps.requests.begin(g)
	err := c.enqueue(ctx, e, r)
	if err == nil {
		err = c.wait(ctx, w)
	}
	c.steps.requests.answered(e.id)
	if err == nil {
		return g, nil
	}
	if e.client == "" || errors.Is(err, lock.ErrDenied) { // no step was decided with it, or it was denied
		c.steps.requests.released(e.id) // the table has no entry of it
	} else {
		_ = g.Release(context.WithoutCancel(ctx)) // remove the entry from the table, granted or not
	}
	return nil, err
}

// wait returns nil once the request is granted. It gives back a grant that arrives as ctx ends.
func (c *FileLocks) wait(ctx context.Context, w *waiter) error {
	if len(w.granted) == 0 {
		signal(c.maintenance.waits)
	}
	w.waits = true
	select {
	case <-w.granted:
	case err := <-w.failed:
		return err
	case <-c.steps.life.Done():
		return context.Cause(c.steps.life)
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// enqueue puts the request into the table, which may grant it at once.
func (c *FileLocks) enqueue(ctx context.Context, e *entry, r lock.Request) error {
	for {
		err := c.steps.visit(ctx, func(s *session) error { return s.request(e, r) })
		if r.IfAvailable || !errors.Is(err, errFuture) {
			return err
		}
		if err := wait.For(ctx, slowest); err != nil {
			return err
		}
	}
}

// check refuses names that cannot be locked. Web Locks refuse the same names, so both strategies lock the same.
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

// heard handles a message of another client. It does not block.
func (c *FileLocks) heard(words []string) {
	switch {
	case len(words) == 3 && words[0] == asking:
		go c.answer(words[1], words[2])
	case len(words) == 4 && words[0] == answering && words[1] == c.questions.name:
		c.questions.answered(words[3], words[2])
	case c.steps.requests.concerned(words):
		c.maintenance.wake()
	}
}

// Close gives back everything that this client holds or waits for, and ends its goroutine. If ctx ends first, other
// clients notice when this client's worker ends.
func (c *FileLocks) Close(ctx context.Context) error {
	c.end(errClosed)
	c.maintenance.work.Wait()
	defer c.steps.notifier.close()
	if !c.steps.turn.take(ctx) {
		return context.Cause(ctx)
	}
	defer c.steps.turn.give()
	if c.steps.liveness.alive.file == nil {
		return nil
	}
	return c.steps.depart(ctx)
}
