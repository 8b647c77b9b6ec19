package autosave

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// write is one commit under way.
type write struct {
	epoch int64 // which snapshot; 0 for content that was given
	since int64 // when the first change that it has was made
	phase Phase
	stop  context.CancelFunc
	done  func(Generation, error) // for content that was given
}

// waiter waits for the snapshot of an epoch, or a later one, to be durable.
type waiter struct {
	epoch  int64
	result chan outcome
}

type outcome struct {
	generation Generation
	err        error
}

// write begins to save what there is now. The change marks are taken before the
// snapshot: one that comes between the two leads to a write too many, never to one too
// few.
func (s *Saver) write() {
	s.epoch++
	s.urgent = false
	s.commit(&write{epoch: s.epoch, since: s.since.Swap(0)}, s.config.Snapshot)
}

// commit commits what content returns.
func (s *Saver) commit(w *write, content func(context.Context) (Content, error)) {
	var ctx context.Context
	ctx, w.stop = context.WithTimeout(s.life, writeLimit)
	w.phase = PhaseWriting
	s.writing = w
	token, owner := s.lease.Token, s.lease.OwnerName
	at := s.config.Clock.Now().Wall
	s.emitPhase(s.phase())
	finish := func(o outcome) {
		s.do(func() {
			if s.writing == w {
				s.written(w, o)
			}
		})
	}
	answer := make(chan outcome, 2) // the first one counts
	go func() {
		take := func(ctx context.Context) (Content, error) {
			taken, err := snapshot(ctx, content)
			if bytes, ok := taken.(Bytes); ok {
				s.sized(int64(len(bytes)))
			}
			return taken, err
		}
		g, err := s.config.Store.Commit(ctx, Commit{Take: take, Token: token, SavedAt: at, OwnerName: owner, Limits: s.config.Limits,
			Progress:  func(p Phase) { s.do(func() { s.progress(w, p) }) },
			Sized:     s.sized,
			Committed: func(g Generation) { answer <- outcome{g, nil} }})
		if err != nil {
			err = asError(err, CodeWriteFailed, "it could not be saved")
		}
		answer <- outcome{g, err}
	}()
	s.work.Go(func() {
		defer w.stop()
		select {
		case o := <-answer:
			finish(o)
		case <-ctx.Done():
			// Cut short by us, it may come back at once with what became of it.
			select {
			case o := <-answer:
				finish(o)
			case <-time.After(noticeLimit):
				finish(outcome{err: &Error{Code: CodeWriteFailed, Detail: "the store did not answer in time", Err: context.Cause(ctx)}})
			}
		}
	})
}

func (s *Saver) sized(bytes int64) { s.do(func() { s.size = bytes }) }

func snapshot(ctx context.Context, take func(context.Context) (Content, error)) (Content, error) {
	content, err := take(ctx)
	if err != nil {
		return nil, asError(err, CodeSnapshotFailed, "the page could not say what to save")
	}
	return content, nil
}

// snapshot returns what the page has now, as bytes.
func (s *Saver) snapshot(ctx context.Context) ([]byte, error) {
	content, err := snapshot(ctx, s.config.Snapshot)
	if err != nil {
		return nil, err
	}
	return content.Bytes()
}

func (s *Saver) progress(w *write, p Phase) {
	if s.writing == w {
		w.phase = p
	}
}

// written notes what became of a commit.
func (s *Saver) written(w *write, o outcome) {
	s.writing = nil
	if o.err != nil {
		s.since.CompareAndSwap(0, w.since)
		switch {
		case s.role != editing && s.role != leaving:
		case errors.Is(o.err, ErrStaleToken):
			s.release()
			s.readonly(lock.ReasonLeaseLost, o.err)
		case w.done != nil:
			s.lastErr = o.err // the caller may try again
		default:
			s.failed(o.err)
		}
		s.resolve(w, o)
		return
	}
	g := o.generation
	s.newest, s.success = &g, s.config.Clock.Now().Wall
	s.recovered()
	if s.role == editing || s.role == leaving {
		s.unsaved = nil
	}
	s.emit(Event{Type: EventSaved, Generation: &g})
	s.resolve(w, o)
}

// resolve answers those who waited for this write.
func (s *Saver) resolve(w *write, o outcome) {
	if w.done != nil {
		w.done(o.generation, o.err)
		return
	}
	var rest []waiter
	for _, waits := range s.waiters {
		if waits.epoch <= w.epoch {
			waits.result <- o
		} else {
			rest = append(rest, waits)
		}
	}
	s.waiters = rest
}

// failed notes a failure of the store, which is tried again.
func (s *Saver) failed(err error) {
	s.failures++
	s.lastErr = err
	s.retryAt = time.Now().Add(s.next())
}

func (s *Saver) recovered() {
	if s.failures > 0 {
		s.next = s.config.Retry.Delays()
	}
	s.failures, s.lastErr = 0, nil
}

// FlushNow saves now and returns when what was dirty at the call is durable, with the
// generation that has it. Where nothing is dirty that is the last one, and where nothing
// was ever saved the first one is written.
//
// Errors match ErrReadOnly (with the reason as its cause), ErrDisabled, ErrDisposed,
// ErrSnapshotFailed or those of [Store]; after these the change stays and is tried again
// by itself. Where ctx has ended its cause is returned, and saving goes on.
func (s *Saver) FlushNow(ctx context.Context) (Generation, error) {
	return s.flush(ctx, editing)
}

func (s *Saver) flush(ctx context.Context, as role) (Generation, error) {
	result := make(chan outcome, 1)
	if !s.do(func() { s.queue(as, result) }) {
		return Generation{}, s.over()
	}
	select {
	case o := <-result:
		return o.generation, o.err
	case <-ctx.Done():
		return Generation{}, context.Cause(ctx)
	}
}

// over says why nothing can be done any more.
func (s *Saver) over() error {
	if s.config.Disabled {
		return ErrDisabled
	}
	return ErrDisposed
}

func (s *Saver) queue(as role, result chan outcome) {
	dirty := s.since.Load() != 0
	switch {
	case s.role != as:
		result <- outcome{err: s.refusal()}
	case !dirty && s.writing == nil && s.newest != nil:
		result <- outcome{generation: *s.newest}
	case !dirty && s.writing != nil && s.writing.epoch != 0:
		s.waiters = append(s.waiters, waiter{s.epoch, result})
	default:
		s.urgent = true
		s.waiters = append(s.waiters, waiter{s.epoch + 1, result})
	}
}

// refusal says why this page may not write.
func (s *Saver) refusal() error {
	return &Error{Code: CodeReadOnly, Detail: "this page may not save now; its changes are kept and offered again", Err: s.lastErr}
}

// Restore makes a generation the current one again and returns its content, for the
// page to load. What the page has at the call is saved before. Errors are those of
// FlushNow and of [Store].
func (s *Saver) Restore(ctx context.Context, id string) ([]byte, error) {
	content, err := s.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	for {
		if _, err := s.FlushNow(ctx); err != nil {
			return nil, err
		}
		result := make(chan outcome, 1)
		again := false
		if !s.do(func() {
			switch {
			case s.role != editing:
				result <- outcome{err: s.refusal()}
			case s.writing != nil || s.since.Load() != 0: // changed since: that has to be saved too
				again = true
			default:
				s.commit(&write{done: func(g Generation, err error) { result <- outcome{g, err} }},
					func(context.Context) (Content, error) { return Bytes(content), nil })
			}
		}) {
			return nil, s.over()
		}
		if again {
			continue
		}
		select {
		case o := <-result:
			return content, o.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
