package autosave

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// write is one commit in progress, or an attempt to fence the previous editor.
type write struct {
	epoch    int64    // the number of this write
	since    int64    // when the first change that it contains was made, or before; 0 if it has no content
	marks    int64    // number of changes before it began
	token    int64    // of the lease under which it writes
	restores *restore // the restore whose content it is; nil: the page's
	phase    Phase
	stop     context.CancelFunc
}

// write begins to save the present content. It may do so when nothing is marked, because a failure must be tried again.
func (s *Saver) write() {
	since, marks := s.changes.take()
	s.commit(&write{since: since, marks: marks}, s.config.Snapshot)
}

// commit commits the result of content.
func (s *Saver) commit(w *write, content func(context.Context) (Content, error)) {
	w.phase = PhaseWriting
	owner, at := s.lease.OwnerName, s.config.Clock.Now().Wall
	take := func(ctx context.Context) (Content, error) {
		taken, err := snapshot(ctx, content)
		plain := taken
		if n, ok := plain.(Numbered); ok {
			plain = n.Content
		}
		if bytes, ok := plain.(Bytes); ok {
			s.sized(int64(len(bytes)))
		}
		return taken, err
	}
	s.launch(w, func(ctx context.Context, committed func(Generation)) (Generation, error) {
		return s.config.Store.Commit(ctx, Commit{Take: take, Token: w.token, SavedAt: at, OwnerName: owner, Limits: s.config.Limits,
			Progress: func(p Phase) { s.do(func() { s.saves.progress(w, p) }) }, Sized: s.sized, Committed: committed})
	}, s.written)
}

// launch makes w the write in progress, runs f for it and calls finish with the outcome: on the owner's goroutine,
// once, and in time even if f hangs, unless this page acquires another lease before. f may announce success before it
// returns.
func (s *Saver) launch(w *write, f func(ctx context.Context, committed func(Generation)) (Generation, error), finish func(*write, outcome)) {
	s.saves.epoch++
	s.saves.urgent = false
	w.epoch, w.token = s.saves.epoch, s.lease.Token
	var ctx context.Context
	ctx, w.stop = context.WithTimeout(s.life, writeLimit)
	s.saves.writing = w
	end := func(o outcome) {
		s.do(func() {
			if s.saves.writing == w {
				s.saves.writing = nil
				finish(w, o)
			}
		})
	}
	answer := make(chan outcome, 2) // the first one counts
	go func() {
		g, err := f(ctx, func(g Generation) { answer <- outcome{g, nil} })
		if err != nil {
			err = asError(err, CodeWriteFailed, "it could not be saved")
		}
		answer <- outcome{g, err}
	}()
	s.work.Go(func() {
		defer w.stop()
		select {
		case o := <-answer:
			end(o)
		case <-ctx.Done():
			// After the context was cancelled here, f may return its outcome at once.
			select {
			case o := <-answer:
				end(o)
			case <-time.After(noticeLimit):
				end(outcome{err: &Error{Code: CodeWriteFailed, Detail: "the store did not answer in time", Err: context.Cause(ctx)}})
			}
		}
	})
}

var errOvertaken = &Error{Code: CodeReadOnly, Detail: "another editor has saved before this page could; this page loads it first"}

// shutOut tries again to fence the previous editor, which failed when this page loaded. That editor may have saved
// since: then this page loads again before it writes.
func (s *Saver) shutOut() {
	known, w := s.newest, &write{}
	s.launch(w, func(ctx context.Context, _ func(Generation)) (Generation, error) {
		if err := s.config.Store.Fence(ctx, w.token); err != nil {
			return Generation{}, err
		}
		all, err := s.config.Store.List(ctx)
		switch current := len(all) > 0 && all[0].Current; {
		case err != nil:
			return Generation{}, err
		case current != (known != nil) || current && all[0].ID != known.ID:
			return Generation{}, errOvertaken
		}
		return Generation{}, nil
	}, s.shut)
}

// shut records whether the previous editor is fenced.
func (s *Saver) shut(w *write, o outcome) {
	if s.leaseDone == nil { // the lease has ended, and its waiters have an answer
		return
	}
	if o.err != nil {
		s.saves.unrestored(o.err)
	}
	switch {
	case o.err == nil:
		s.unfenced = false
		s.retries.recovered()
		s.saves.urgent = len(s.saves.waiters) > 0
	case !s.writes():
		s.saves.resolve(w, o)
	case errors.Is(o.err, ErrStaleToken):
		s.refused(o.err)
	case errors.Is(o.err, errOvertaken):
		s.saves.refuse(o.err)
		s.load(s.lease)
	default:
		s.retries.failed(o.err)
		s.saves.resolve(w, o)
	}
}

func (s *Saver) sized(bytes int64) { s.do(func() { s.saves.size = bytes }) }

// written handles the outcome of a commit.
func (s *Saver) written(w *write, o outcome) {
	holds := s.leaseDone != nil // it may verify its lease
	if o.err != nil {
		if holds { // otherwise yield has done so, and another page may have saved the text since
			s.changes.keep(w.since)
		}
		s.saves.unrestored(o.err)
		switch {
		case !holds:
		case errors.Is(o.err, ErrStaleToken):
			s.refused(o.err)
		case errors.Is(o.err, lock.ErrNotAllowed):
			s.stepBack(o.err, 0)
		default:
			s.retries.failed(o.err)
		}
		s.saves.resolve(w, o)
		return
	}
	g := o.generation
	if holds {
		s.refusals = 0
		s.retries.recovered()
		s.drafts.unsaved = unsaved{}
	} else {
		s.clean(w)
	}
	s.saved(w, g)
	if w.restores != nil {
		s.restored(w)
	}
	s.saves.resolve(w, o)
}

// emptied makes this page save its text anew if an error says that the storage was emptied.
func (s *Saver) emptied(err error) {
	if errors.Is(err, ErrEvicted) && s.writes() {
		s.changes.keep(s.changes.now())
	}
}

// FlushNow saves now. It returns when the changes before the call are durable, with the generation that contains them.
// If nothing has changed it returns the last generation; if nothing was ever saved it writes the first one.
//
// Errors match ErrReadOnly (with the reason as its cause), ErrDisabled, ErrDisposed, ErrSnapshotFailed or those of
// [Store]; after the last two kinds the change stays, and AutoSave tries again. If ctx has ended, its cause is
// returned, and after fourteen seconds ErrWriteFailed; saving continues.
func (s *Saver) FlushNow(ctx context.Context) (Generation, error) {
	ctx, stop := bounded(ctx)
	defer stop()
	return s.flush(ctx, editing)
}

func (s *Saver) flush(ctx context.Context, as role) (Generation, error) {
	return s.generation(ctx, func(result chan outcome) { s.queue(as, result) })
}

// generation requests a generation and returns it. The answer may arrive after ctx has ended.
func (s *Saver) generation(ctx context.Context, ask func(result chan outcome)) (Generation, error) {
	result := make(chan outcome, 1)
	if !s.do(func() { ask(result) }) {
		return Generation{}, s.over()
	}
	select {
	case o := <-result:
		return o.generation, o.err
	case <-ctx.Done():
		return Generation{}, late(ctx, CodeWriteFailed, theSave)
	}
}

func (s *Saver) queue(as role, result chan outcome) {
	dirty := s.changes.dirty()
	switch {
	case s.role != as:
		result <- outcome{err: s.refusal()}
	case !dirty && !s.saves.saving() && s.newest != nil:
		result <- outcome{generation: *s.newest}
	case !dirty && s.saves.saving() && (s.saves.writing.restores == nil || s.loadable(s.saves.writing.restores)): // else the page's text is saved again
		s.saves.waiters = append(s.saves.waiters, waiter{s.saves.epoch, result})
	default:
		s.saves.urgent = true
		s.saves.waiters = append(s.saves.waiters, waiter{s.saves.epoch + 1, result})
	}
}
