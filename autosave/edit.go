package autosave

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
)

// begin finds out whether this page may write. It does not wait for another editor, only for the release of its own last lease.
func (s *Saver) begin() {
	s.enter(starting)
	s.acquireAgain()
}

// acquireAgain acquires the lock if nobody holds it after the last lease of this page was released.
func (s *Saver) acquireAgain() {
	last := s.lease
	s.background(func(_ context.Context, step func(func()) bool) {
		giveBack(last)
		step(s.acquireFree)
	})
}

// acquireFree acquires the lock if nobody holds it.
func (s *Saver) acquireFree() {
	opts := s.config.Lock
	opts.IfAvailable, opts.Timeout, opts.Steal = true, lock.NoWait, false
	s.acquire(opts)
}

// acquire asks for the lock once. The answer makes this page the editor or a viewer.
func (s *Saver) acquire(opts lock.AcquireOptions) {
	opts.After = s.after
	s.background(func(ctx context.Context, step func(func()) bool) {
		lease, err := s.config.Locks.Acquire(ctx, opts)
		switch {
		case err != nil:
			step(func() { s.readonly(lock.ReasonAcquireFailed, err) })
		case !step(func() { s.load(lease) }):
			giveBack(lease)
		}
	})
}

// standby waits in the queue until it is this page's turn. It first pauses: for the given time, or longer if the store
// has repeatedly refused the tokens of this page.
func (s *Saver) standby(pause time.Duration) {
	if s.config.NoStandby || errors.Is(s.retries.lastErr, lock.ErrUnsupported) || errors.Is(s.retries.lastErr, lock.ErrWebLockUnsupported) ||
		errors.Is(s.retries.lastErr, lock.ErrInvalidArgument) || errors.Is(s.retries.lastErr, lock.ErrNotAllowed) {
		return
	}
	s.lineUp(pause)
}

// lineUp joins the queue after the pause.
func (s *Saver) lineUp(pause time.Duration) {
	s.queued = true
	opts := s.config.Lock
	opts.IfAvailable, opts.Steal, opts.Timeout = false, false, standbyLimit
	opts.Backoff.MaxRetries = lock.Unlimited
	opts.After = s.after
	if s.refusals > 1 {
		pause = max(pause, s.patience())
	}
	s.background(func(ctx context.Context, step func(func()) bool) {
		next := s.config.Retry.Delays()
		_ = wait.For(ctx, pause)
		for ctx.Err() == nil {
			lease, err := s.config.Locks.Acquire(ctx, opts)
			if err == nil {
				if !step(func() { s.load(lease) }) {
					giveBack(lease)
				}
				return
			}
			if errors.Is(err, lock.ErrNotAllowed) || errors.Is(err, lock.ErrInvalidArgument) { // the lease around it has ended
				step(func() { s.readonly(lock.ReasonAcquireFailed, err) })
				return
			}
			_ = wait.For(ctx, next())
		}
	})
}

// refused releases a lease whose token the store refused because it knows a later one. There are two causes. Another page may
// have taken over. Or the lock has lost its records and counts from the start again; then the next lease asks for a token after the
// store's. Not every Locker can give one, so the pauses between attempts grow after refusals in a row, and the page gets an event
// for the first refusal only.
func (s *Saver) refused(err error) {
	var later *LaterToken
	if errors.As(err, &later) {
		s.after = max(s.after, later.Token)
	}
	if s.refusals++; s.refusals == 1 {
		s.patience = s.config.Retry.Delays()
	}
	if s.role == loading && s.refusals == 1 {
		s.regain(err)
		return
	}
	s.stepBack(err, 0)
}

// stepBack releases the lease, if there is one, and after a pause waits for the next turn. The page gets an event
// unless it knows already that it may not edit.
func (s *Saver) stepBack(err error, pause time.Duration) {
	s.release()
	if !s.denied {
		s.readonly(lock.ReasonLeaseLost, err)
		return
	}
	s.yield(viewing, err)
	s.settle()
	s.standby(pause)
}

// regain releases the lease and acquires another one, unless another page takes it meanwhile.
func (s *Saver) regain(err error) {
	s.yield(starting, err)
	s.acquireAgain()
}

// edit gives the page the content to load and then lets it edit. It waits until the listener has returned, so that
// nothing is typed into a text that is about to be replaced, and no such text is saved. It does not wait for a listener
// that hangs.
func (s *Saver) edit(found loaded) {
	e := Event{Type: EventEditable, LeaseID: s.lease.ID, Drafts: found.waiting}
	if found.newest == nil && (s.newest != nil || s.changes.count() > 0) { // the storage was emptied, or a draft was discarded: only this page has the text
		s.changes.keep(s.changes.now())
	}
	if found.newest != nil {
		e.Base = found.newest.ID
	}
	s.newest, s.denied = found.newest, false
	if found.foreign { // otherwise the page still shows its text, and saves it now
		s.drafts.replaced()
		s.changes.forget()
		e.Content, e.Loaded, e.Unsaved = found.content, found.content != nil, s.drafts.unsaved.text
		s.saves.size = int64(len(found.content))
	}
	s.retries.recovered()
	fresh := s.drafts.wait(found.waiting)
	s.emitPhase(s.phase())
	e.State = s.state()
	term := s.term
	open := func() {
		s.do(func() {
			if s.term == term {
				s.opened(found)
			}
		})
	}
	time.AfterFunc(answerLimit, open)
	s.events.tellThen(e, open)
	s.tellDrafts(fresh, found.sides)
}

// opened is called when the page has loaded its content.
func (s *Saver) opened(found loaded) {
	lease := s.lease
	s.held.Store(&lease)
	s.retries.lastErr, s.holder = found.trouble, nil
	if s.unfenced = found.unfenced != nil; s.unfenced {
		s.retries.failed(found.unfenced)
	}
	s.enter(editing)
	s.emitPhase(s.phase())
	s.settle()
	s.tookOver()
}

// lost is called when the lease has ended.
func (s *Saver) lost() {
	err, reason := s.lease.Err(), lock.ReasonLeaseLost
	if errors.Is(err, lock.ErrStale) {
		reason = lock.ReasonRenewFailed
	}
	if err == nil {
		err = &lock.Error{Code: lock.CodeLost, Operation: lock.OpRenew, Resource: s.lease.Resource, Detail: "the lease was released"}
	}
	s.readonly(reason, err)
}

// readonly makes this page a viewer and notifies it, with the text that it could not save.
func (s *Saver) readonly(reason lock.ReadonlyReason, err error) {
	l := loss{s.changes.dirty() || s.saves.saving(), s.changes.count(), s.drafts.text, s.lossCause(err)}
	s.yield(viewing, err)
	named := make(chan struct{})
	s.holder, s.unnamed, s.telling = nil, named, true
	s.retries.failures, s.retries.next = 0, s.config.Retry.Delays()
	s.emitPhase(s.phase())
	s.background(func(ctx context.Context, step func(func()) bool) {
		previewed := make(chan struct{})
		s.work.Go(func() { defer close(previewed); s.preview(ctx, reason, step) })
		holder := s.gather(ctx, l, named, previewed)
		step(func() {
			s.unnamed, s.telling = nil, false
			if s.holder == nil { // otherwise the new editor has announced itself
				s.holder = holder
			}
			what := EventReadonly
			if s.denied && reason != lock.ReasonAcquireFailed { // the page has not edited since the last one
				what = EventPhase
			}
			s.denied = true
			s.emit(Event{Type: what, Reason: reason, Err: err, Holder: s.holder, Unsaved: s.drafts.unsaved.text})
			if !l.dirty && s.changes.dirty() { // the mark was under way as the lock was lost
				l.dirty, l.marked = true, s.changes.count()
				s.work.Go(func() { s.keepLoss(l) })
			}
			s.settle()
			s.standby(0)
		})
		s.askOn(ctx, step)
		<-previewed // ctx ends with this function
	})
}

// askOn repeats the question which page edits, if the answer did not arrive in time for autosave:readonly, as on a busy
// machine.
func (s *Saver) askOn(ctx context.Context, step func(func()) bool) {
	for range inspectRetries {
		answered := true
		if !step(func() { answered = s.holder != nil && s.holder.LeaseID != "" }) || answered {
			return
		}
		if h := s.config.whoEdits(ctx, lateInspectLimit); h != nil && h.LeaseID != "" {
			step(func() { s.named(*h) })
		}
	}
}

// yield ends everything that this page did as an editor or in order to become one.
func (s *Saver) yield(r role, err error) {
	s.stop()
	s.enter(r)
	if w := s.saves.writing; w != nil {
		w.stop()
		if s.leaseDone != nil && w.restores == nil { // it may fail
			s.changes.keep(w.since)
		}
	}
	s.leaseDone, s.retries.lastErr = nil, err
	s.held.Store(nil)
	s.endHandover()
	if r == suspended {
		s.withdraw()
	}
	s.saves.refuse(s.refusal())
}

// gather finds out which page edits, and takes the text that this page could not save. Both have little time, because
// the page must be notified. A later answer is kept. A preview that is ready in that time comes before
// autosave:readonly.
func (s *Saver) gather(ctx context.Context, l loss, named, previewed chan struct{}) *lock.Holder {
	limited, stop := context.WithTimeout(ctx, noticeLimit)
	defer stop()
	holders := make(chan *lock.Holder, 1)
	go func() { holders <- s.config.whoEdits(ctx, inspectLimit) }()
	kept := make(chan struct{})
	if l.dirty {
		s.work.Go(func() { defer close(kept); s.keepLoss(l) })
	} else {
		close(kept)
	}
	var holder *lock.Holder
	for holderIn, keptIn := holders, kept; holderIn != nil || keptIn != nil || previewed != nil; {
		select {
		case holder = <-holderIn:
			holderIn, named = nil, nil
		case <-named:
			holderIn, named = nil, nil
		case <-keptIn:
			keptIn = nil
		case <-previewed:
			previewed = nil
		case <-limited.Done():
			return holder
		}
	}
	return holder
}
