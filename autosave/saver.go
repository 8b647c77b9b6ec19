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
// One goroutine owns all state that changes. Slow work runs on other goroutines.
type Saver struct {
	// The layers below: page, peers, writer, drafter, status, tenure, loop. Each embeds the next one. A method belongs to the lowest layer that
	// has the state it needs, and calls nothing above that layer: it returns what has happened, and the caller acts.
	page

	final State // read after gone is closed

	disposed   chan struct{} // closed when the Dispose that ends this page has its result
	disposeErr error         // read after disposed is closed
}

// New starts AutoSave. It returns once it is known whether this page edits. If it does, the listener has received the
// last saved content by then. The lock has five seconds for its answer, and the listener has five seconds to return.
// After nine seconds New returns in any case: until the store and the lock answer, the page is read-only. A page that
// may not edit is no error. Errors match ErrInvalidArgument and lock.ErrInvalidArgument, or are the cause of ctx.
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
		deafen, err := c.Channel.Listen(s.receive)
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
	s := &Saver{disposed: make(chan struct{})}
	s.decisions, s.reads = newDecisions(), make(chan struct{}, readsAtOnce)
	s.loop.open()
	s.verdict, s.stop = make(chan struct{}), func() {}
	s.config, s.changes.began = c, time.Now().Add(-1)
	s.events = events{queue: inorder.New(), listener: c.Listener, shown: shown{phase: PhaseIdle}}
	s.retries = retries{backoff: c.Retry, next: c.Retry.Delays()}
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
func (s *Saver) MarkDirty() { s.mark() }

// ReadOnly reports whether this page may not edit.
func (s *Saver) ReadOnly() bool { return s.readOnly.Load() }

// Lease returns the lease under which this page edits, if any.
func (s *Saver) Lease() (lock.Lease, bool) { return s.editingLease() }

// State returns the present state.
func (s *Saver) State() State {
	var state State
	if !s.do(func() { s.advance(); state = s.state() }) {
		return s.final
	}
	return state
}

// FlushEvents returns when the listener has handled all events so far, or with the cause when ctx ends. The listener must not
// call it.
func (s *Saver) FlushEvents(ctx context.Context) error { return s.events.handled(ctx) }

// run is the loop. After each function, message or deadline, advance begins everything that is due.
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

// Drafts returns the drafts of this document that wait for a decision, the newest first.
// Errors match ErrReadFailed or ErrDisabled.
func (s *Saver) Drafts(ctx context.Context) ([]Draft, error) { return s.waitingDrafts(ctx) }

// FlushNow saves now. It returns when the changes before the call are durable, with the generation that contains them.
// If nothing has changed it returns the last generation; if nothing was ever saved it writes the first one.
//
// Errors match ErrReadOnly (with the reason as its cause), ErrDisabled, ErrDisposed, ErrSnapshotFailed or those of
// [Store]. After the last two kinds the change stays, and AutoSave tries again. If ctx has ended, its cause is
// returned. After fourteen seconds the error is ErrWriteFailed. Saving continues in both cases.
func (s *Saver) FlushNow(ctx context.Context) (Generation, error) {
	ctx, stop := bounded(ctx)
	defer stop()
	return s.flush(ctx, editing)
}
