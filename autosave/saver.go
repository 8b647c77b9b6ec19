package autosave

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/internal/inorder"
	"github.com/holdfast-dev/holdfast/lock"
)

// Saver saves the text that a page edits, while it holds the project's lock. Its methods may be called from any
// goroutine.
//
// One goroutine, run, owns all mutable state. Slow work runs on other goroutines and returns its results through do.
type Saver struct {
	// The state is divided into types by subject. The methods of a type need its own state only. The methods of the Saver combine the
	// types: a message, the end of a lease or the outcome of a write changes the role of the page, and the role decides about the text.

	config  Config // not changed after New
	events  events
	changes changes // methods for any goroutine
	adopted *adoptions

	// Used by run alone. Nearly every step depends on the role, so tenure is embedded.
	tenure
	saves   saves
	retries retries
	drafts  draftState
	newest  *Generation // the last generation that this page has written or loaded
	success time.Time   // of the last write

	// The other pages; used by run alone.
	holder  *lock.Holder  // the page that edits, as far as this page knows
	unnamed chan struct{} // closed when the new editor announces itself; nil once the page knows
	handing *handing
	asking  *ask

	mail  messageQueue
	reads chan struct{} // capacity: the calls that may read at once
	final State         // read after gone is closed

	disposed   chan struct{} // closed when the Dispose that ends this page has its result
	disposeErr error         // read after disposed is closed
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
		s.events.tell(Event{Type: EventPhase, State: s.final})
		s.timer.Stop()
		close(s.gone)
		return s, nil
	}
	if c.Channel != nil {
		deafen, err := c.Channel.Listen(s.hear)
		if err != nil {
			s.end()
			s.timer.Stop()
			s.events.queue.Close()
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
	s := &Saver{config: c, events: events{queue: inorder.New(), listener: c.Listener, shown: shown{phase: PhaseIdle}}, changes: changes{began: time.Now().Add(-1)}, adopted: newAdoptions(),
		reads: make(chan struct{}, readsAtOnce), disposed: make(chan struct{}), tenure: tenure{verdict: make(chan struct{}), stop: func() {}},
		retries: retries{backoff: c.Retry, next: c.Retry.Delays()}}
	s.loop.open()
	go s.events.queue.Run()
	if s.drafts.lineage = c.Lineage; c.Shown != "" {
		s.newest = &Generation{ID: c.Shown}
	}
	s.readOnly.Store(true)
	return s
}

// awaitStart begins, and waits until it is known whether this page edits, at most for startLimit. It fails if ctx ends
// before, or if the lock of a page that is new does not take the options.
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
	if errors.Is(err, lock.ErrInvalidArgument) && !s.config.Again {
		return err
	}
	return nil
}

// MarkDirty reports a change. It may be called at every keystroke: it neither allocates nor waits.
func (s *Saver) MarkDirty() {
	if s.changes.mark() {
		s.wakeOwner()
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
func (s *Saver) Told(ctx context.Context) error { return inorder.Flush(ctx, s.events.queue.Mark()) }

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
	if s.drafts.settled && s.changes.dirty() {
		s.drafts.settled = false
		s.reconsider()
	}
	if s.saves.writing == nil && s.writes() {
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
	case s.saves.writing != nil && s.saves.writing.phase != "" && s.writes():
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
	case !s.writes() && s.drafts.unsaved.text != nil:
		state.PendingBytes = max(1, int64(len(s.drafts.unsaved.text)))
	case dirty || s.saves.saving():
		state.PendingBytes = max(1, s.saves.size)
	}
	if s.saves.saving() && dirty {
		state.QueuedGeneration = s.saves.epoch + 1
	}
	if !s.writes() {
		state.Holder = s.holder
	}
	return state
}

// emitPhase emits the phase, whether this page may edit, and whether the server answers, if one of them has changed.
func (s *Saver) emitPhase(p Phase) {
	now := shown{p, s.role != editing, s.config.offline()}
	if s.events.shown == now {
		return
	}
	s.events.shown = now
	s.events.tell(Event{Type: EventPhase, State: s.state()})
}

func (s *Saver) emit(e Event) {
	s.emitPhase(s.phase())
	e.State = s.state()
	s.events.tell(e)
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
	s.events.tell(Event{Type: EventPhase, State: s.state()})
}
