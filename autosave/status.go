package autosave

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// status has the data from which a State is made, and emits the events with it. Only the loop uses it. Other goroutines may use config and
// changes, and may wait for the events.
type status struct {
	tenure
	config  Config // not changed after New
	events  events
	changes changes
	saves   saves
	retries retries
	drafts  draftState
	newest  *Generation  // the last generation that this page has written or loaded
	success time.Time    // of the last write
	holder  *lock.Holder // the page that edits, as far as this page knows
}

// phase returns the present phase.
func (s *status) phase() Phase {
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

// state returns the present state, for an event or a caller.
func (s *status) state() State {
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
func (s *status) emitPhase(p Phase) {
	now := shown{p, s.role != editing, s.config.offline()}
	if s.events.shown == now {
		return
	}
	s.events.shown = now
	s.events.tell(Event{Type: EventPhase, State: s.state()})
}

// emit emits an event with the present state, after the phase if that has changed.
func (s *status) emit(e Event) {
	s.emitPhase(s.phase())
	e.State = s.state()
	s.events.tell(e)
}

// unanswered records that it is not known yet whether this page may edit.
func (s *status) unanswered() {
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

// refusal returns the reason why this page may not write.
func (s *status) refusal() error {
	code := CodeReadOnly
	if errors.Is(s.retries.lastErr, lock.ErrNotAllowed) {
		code = lock.CodeNotAllowed
	}
	return &Error{Code: code, Detail: "this page may not save now; its changes are kept and offered again", Err: s.retries.lastErr}
}

// whyEnded returns the reason why this page can do nothing any more.
func (s *status) whyEnded() error {
	if s.config.Disabled {
		return ErrDisabled
	}
	return ErrDisposed
}

// await waits until it is known which page edits.
func (s *status) await(ctx context.Context, verdict chan struct{}) error {
	select {
	case <-verdict:
		return nil
	case <-ctx.Done():
		return &Error{Code: CodeAborted, Detail: "the caller gave up", Err: context.Cause(ctx)}
	case <-s.gone:
		return s.whyEnded()
	}
}

// mark records a change of the text. Any goroutine may call it; it neither allocates nor waits.
func (s *status) mark() {
	if s.changes.mark() {
		s.wakeLoop()
	}
}
