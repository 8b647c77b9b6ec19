package autosave

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/inorder"
	"github.com/holdfast-dev/holdfast/lock"
)

// role is the role of this page among the others.
type role int

const (
	starting  role = iota // it is not known yet whether this page may write
	loading               // it has the lock, and reads the last saved content
	editing               // it may write
	leaving               // it saves for the last time before it releases the lock
	viewing               // another page may write
	suspended             // the page sleeps and does not want the lock
	ended
)

// Saver saves the text that a page edits, while it holds the project's lock. Its methods may be called from any
// goroutine.
//
// One goroutine, run, owns all mutable state. Slow work runs on other goroutines and returns its results through do.
type Saver struct {
	config  Config
	events  *inorder.Queue // calls of the listener
	changes changes
	work    sync.WaitGroup

	wake  chan struct{} // capacity 1
	inbox chan func()
	reads chan struct{} // capacity: the calls that may read at once
	mail  messageQueue
	gone  chan struct{} // closed when run has ended
	life  context.Context
	end   context.CancelFunc
	final State // read after gone is closed

	readOnly atomic.Bool
	held     atomic.Pointer[lock.Lease]

	// Used by run alone.
	role      role
	term      int64 // rises with every change of role: work of an earlier term is void
	lease     lock.Lease
	leaseDone <-chan struct{} // nil without a lease
	after     int64           // the highest token of another owner that the store is known to have seen
	refusals  int             // leases in a row whose token the store refused
	patience  func() time.Duration
	denied    bool               // of autosave:readonly and autosave:editable, the last one was readonly
	unfenced  bool               // the previous editor could not be fenced: nothing is written before that
	verdict   chan struct{}      // closed, and replaced, when it is known which page edits
	stop      context.CancelFunc // ends the waiting or loading of this term

	success time.Time
	newest  *Generation // the last generation that this page has written or loaded
	saves   saves
	retries retries
	drafts  draftState
	holder  *lock.Holder
	unnamed chan struct{} // closed when the new editor announces itself; nil once the page knows
	shown   shown
	timer   *time.Timer

	queued  bool // this page waits for the lock
	handing *handing
	asking  *ask
}

// New starts AutoSave. It returns once it is known whether this page edits and, if so, the listener was given the last
// saved content. The lock has five seconds for its answer, and so has the listener for returning. After nine seconds
// New returns in any case: until the store and the lock answer, the page is read-only. A page that may not edit is no
// error. Errors match ErrInvalidArgument and lock.ErrInvalidArgument, or are the cause of ctx.
func New(ctx context.Context, c Config) (*Saver, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	s := newSaver(c)
	if c.Dirty {
		s.MarkDirty()
	}
	if c.Disabled {
		s.final = s.config.where(State{Phase: PhaseDisabled, ReadOnly: true})
		s.tell(Event{Type: EventPhase, State: s.final})
		s.timer.Stop()
		close(s.gone)
		return s, nil
	}
	if c.Channel != nil {
		deafen, err := c.Channel.Listen(s.hear)
		if err != nil {
			s.end()
			s.timer.Stop()
			s.events.Close()
			return nil, err
		}
		context.AfterFunc(s.life, deafen)
	}
	go s.run()
	s.watch()
	if err := s.awaitStart(ctx); err != nil {
		s.discard()
		return nil, err
	}
	return s, nil
}

// newSaver returns a read-only Saver whose listener is called, and that does nothing else yet.
func newSaver(c Config) *Saver {
	s := &Saver{config: c, events: inorder.New(), changes: changes{began: time.Now().Add(-1)}, wake: make(chan struct{}, 1),
		inbox: make(chan func()), reads: make(chan struct{}, readsAtOnce), gone: make(chan struct{}), verdict: make(chan struct{}),
		shown: shown{phase: PhaseIdle}, timer: time.NewTimer(time.Hour), retries: retries{backoff: c.Retry, next: c.Retry.Delays()}, stop: func() {}}
	s.life, s.end = context.WithCancel(context.Background())
	go s.events.Run()
	if s.drafts.lineage = c.Lineage; c.Shown != "" {
		s.newest = &Generation{ID: c.Shown}
	}
	s.readOnly.Store(true)
	return s
}

// awaitStart begins, and waits until it is known whether this page edits, at most for startLimit. It fails if ctx ends
// before, or if the lock does not take the options.
func (s *Saver) awaitStart(ctx context.Context) error {
	var verdict chan struct{}
	s.do(func() { verdict = s.verdict; s.begin() })
	select {
	case <-verdict:
	case <-time.After(startLimit):
		s.do(s.unanswered)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var err error
	s.do(func() { err = s.retries.lastErr })
	if errors.Is(err, lock.ErrInvalidArgument) {
		return err
	}
	return nil
}

// MarkDirty reports a change. It may be called at every keystroke: it neither allocates nor waits.
func (s *Saver) MarkDirty() {
	if s.changes.mark() {
		s.rouse()
	}
}

// ReadOnly reports whether this page may not edit.
func (s *Saver) ReadOnly() bool { return s.readOnly.Load() }

// Lease returns the lease under which this page edits, if any.
func (s *Saver) Lease() (lock.Lease, bool) {
	l := s.held.Load()
	if l == nil || s.ReadOnly() {
		return lock.Lease{}, false
	}
	return *l, true
}

// State returns the present state.
func (s *Saver) State() State {
	var state State
	if !s.do(func() { s.advance(); state = s.state() }) {
		return s.final
	}
	return state
}

// Told returns when the listener has handled all events so far, or with the cause when ctx ends. The listener must not
// call it.
func (s *Saver) Told(ctx context.Context) error { return inorder.Flush(ctx, s.events.Mark()) }

// do runs f on the goroutine that owns the state and waits for it. It reports whether f has run.
func (s *Saver) do(f func()) bool {
	done := make(chan struct{})
	select {
	case s.inbox <- func() { defer close(done); f() }:
		<-done
		return true
	case <-s.gone:
		return false
	}
}

// run owns the state. After each message or timer, advance begins everything that is due.
func (s *Saver) run() {
	defer close(s.gone)
	for s.role != ended {
		select {
		case f := <-s.inbox:
			f()
		case <-s.wake:
			for _, m := range s.mail.take() {
				s.answer(m)
			}
		case <-s.timer.C:
		case <-s.leaseDone:
			s.lost()
		}
		s.advance()
	}
	s.timer.Stop()
	s.final = s.state()
}

// advance begins everything that is due, sets the timer to the next deadline, and emits the phase.
func (s *Saver) advance() {
	if s.role == ended {
		return
	}
	if s.saves.writing == nil && (s.role == editing || s.role == leaving) {
		if at, ok := s.due(); ok {
			if pause := time.Until(at); pause > 0 {
				s.timer.Reset(pause)
			} else {
				s.writeNext()
			}
		}
	}
	s.emitPhase(s.phase())
}

// writeNext begins the write that is due.
func (s *Saver) writeNext() {
	s.saves.bound()
	switch {
	case s.unfenced:
		s.shutOut()
	case s.restorable():
		s.restoreNext()
	default:
		s.write()
	}
}

// due returns the time of the next write.
func (s *Saver) due() (time.Time, bool) {
	switch {
	case s.saves.urgent, len(s.saves.restores) > 0:
		return time.Now(), true
	case s.unfenced:
		return s.retries.retryAt, true
	case !s.changes.dirty():
		return time.Time{}, false
	case s.retries.failures > 0:
		return s.retries.retryAt, true
	}
	return s.changes.due(s.config.Debounce, s.config.Idle), true
}

func (s *Saver) phase() Phase {
	switch {
	case s.saves.writing != nil && s.saves.writing.phase != "" && (s.role == editing || s.role == leaving):
		return s.saves.writing.phase
	case s.role == starting:
		return PhaseAwaitingLock
	case s.role == loading && s.retries.failures > 0:
		return PhaseError
	case s.role == loading:
		return PhaseAwaitingLock
	case s.role != editing:
		return PhaseReadonly
	case s.retries.failures > 0:
		return PhaseError
	case s.changes.dirty() || s.saves.urgent:
		return PhaseDebouncing
	}
	return PhaseIdle
}

func (s *Saver) state() State {
	state := s.config.where(State{Phase: s.phase(), ReadOnly: s.role != editing, LastSuccess: s.success, LastErr: s.retries.lastErr, RetryCount: s.retries.failures,
		Drafts: len(s.drafts.waiting)})
	dirty := s.changes.dirty()
	switch {
	case s.role != editing && s.role != leaving && s.drafts.unsaved.text != nil:
		state.PendingBytes = max(1, int64(len(s.drafts.unsaved.text)))
	case dirty || s.saves.saving():
		state.PendingBytes = max(1, s.saves.size)
	}
	if s.saves.saving() && dirty {
		state.QueuedGeneration = s.saves.epoch + 1
	}
	if s.role != editing && s.role != leaving {
		state.Holder = s.holder
	}
	return state
}

// emitPhase emits the phase, whether this page may edit, and whether the server answers, if one of them has changed.
func (s *Saver) emitPhase(p Phase) {
	now := shown{p, s.role != editing, s.config.offline()}
	if s.shown == now {
		return
	}
	s.shown = now
	s.tell(Event{Type: EventPhase, State: s.state()})
}

// shown is the state that the listener knows.
type shown struct {
	phase    Phase
	readOnly bool
	offline  bool
}

func (s *Saver) emit(e Event) {
	s.emitPhase(s.phase())
	e.State = s.state()
	s.tell(e)
}

// enter changes the role. All work of the previous role becomes void.
func (s *Saver) enter(r role) {
	s.role = r
	s.term++
	s.queued = false
	s.readOnly.Store(r != editing)
}

// leave begins to give the lock away. A restore that has not begun is refused: the page's own text is handed over.
func (s *Saver) leave() {
	s.enter(leaving)
	for i := len(s.saves.restores) - 1; i >= 0; i-- {
		if s.saves.writing == nil || s.saves.writing.restores != s.saves.restores[i] {
			s.saves.settleRestore(s.saves.restores[i], s.refusal())
		}
	}
}

// unanswered records that it is not known yet whether this page may edit.
func (s *Saver) unanswered() {
	switch {
	case s.role != starting && s.role != loading:
		return
	case s.role == loading:
		s.retries.lastErr = &Error{Code: CodeReadFailed, Detail: theStore + " does not answer; this page is read-only until it does"}
	default:
		s.retries.lastErr = &lock.Error{Code: lock.CodeTimeout, Operation: lock.OpAcquire, Detail: "the lock does not answer; this page is read-only until it does"}
	}
	s.tell(Event{Type: EventPhase, State: s.state()})
}

// settle notifies the callers that wait until it is known which page edits.
func (s *Saver) settle() {
	close(s.verdict)
	s.verdict = make(chan struct{})
}
