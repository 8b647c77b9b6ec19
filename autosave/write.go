package autosave

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// write is one commit in progress, or an attempt to fence the previous editor.
type write struct {
	epoch   int64    // the number of this write
	since   int64    // when the first change that it contains was made, or before; 0 if it has no content
	marks   int64    // number of changes before it began
	token   int64    // of the lease under which it writes
	restore *restore // the restore whose content it is; nil: the page's
	phase   Phase
	stop    context.CancelFunc
}

// fences reports whether this is an attempt to fence the previous editor.
func (w *write) fences() bool { return w.since == 0 }

// writer saves: the text that the page shows, or a generation that becomes the current one again. The loop calls its methods, except for those
// that take a context. They wait, and run on the goroutines of callers.
type writer struct{ drafter }

// write begins to save the present content. It may do so when nothing is marked, because a failure must be tried again.
func (wr *writer) write() {
	since, marks := wr.changes.take()
	wr.commit(&write{since: since, marks: marks}, wr.config.Snapshot)
}

// commit commits the result of content.
func (wr *writer) commit(w *write, content func(context.Context) (Content, error)) {
	w.phase = PhaseWriting
	owner, at := wr.lease.OwnerName, wr.config.Clock.Now().Wall
	take := func(ctx context.Context) (Content, error) {
		taken, err := snapshot(ctx, content)
		plain := taken
		if n, ok := plain.(Numbered); ok {
			plain = n.Content
		}
		if bytes, ok := plain.(Bytes); ok {
			wr.sized(int64(len(bytes)))
		}
		return taken, err
	}
	wr.launch(w, func(ctx context.Context, committed func(Generation)) (Generation, error) {
		return wr.config.Store.Commit(ctx, Commit{Take: take, Token: w.token, SavedAt: at, OwnerName: owner, Limits: wr.config.Limits,
			Progress: func(p Phase) { wr.do(func() { wr.saves.progress(w, p) }) }, Sized: wr.sized, Committed: committed})
	})
}

// launch makes w the write in progress, and runs f for it. The write ends with the outcome of f, in time even if f hangs, unless this page
// acquires another lease before. f may announce success before it returns.
func (wr *writer) launch(w *write, f func(ctx context.Context, committed func(Generation)) (Generation, error)) {
	wr.saves.epoch++
	wr.saves.urgent = false
	w.epoch, w.token = wr.saves.epoch, wr.lease.Token
	var ctx context.Context
	ctx, w.stop = context.WithTimeout(wr.life, writeLimit)
	wr.saves.writing = w
	end := func(o outcome) { wr.do(func() { wr.saves.end(w, o) }) }
	answer := make(chan outcome, 2) // the first one counts
	go func() {
		g, err := f(ctx, func(g Generation) { answer <- outcome{g, nil} })
		if err != nil {
			err = asError(err, CodeWriteFailed, "it could not be saved")
		}
		answer <- outcome{g, err}
	}()
	wr.work.Go(func() {
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

// fence tries again to fence the previous editor, which failed when this page loaded. That editor may have saved
// since: then this page loads again before it writes.
func (wr *writer) fence() {
	known, w := wr.newest, &write{}
	wr.launch(w, func(ctx context.Context, _ func(Generation)) (Generation, error) {
		if err := wr.config.Store.Fence(ctx, w.token); err != nil {
			return Generation{}, err
		}
		all, err := wr.config.Store.List(ctx)
		switch current := len(all) > 0 && all[0].Current; {
		case err != nil:
			return Generation{}, err
		case current != (known != nil) || current && all[0].ID != known.ID:
			return Generation{}, errOvertaken
		}
		return Generation{}, nil
	})
}

// fenced records whether the previous editor is fenced. It returns the error if this page must not write what it shows: the store
// has refused its token, or the previous editor has saved.
func (wr *writer) fenced(w *write, o outcome) error {
	if wr.leaseDone == nil { // the lease has ended, and its waiters have an answer
		return nil
	}
	if o.err != nil {
		wr.saves.refuseRestores(o.err)
	}
	switch {
	case o.err == nil:
		wr.unfenced = false
		wr.retries.recovered()
		wr.saves.urgent = len(wr.saves.waiters) > 0
	case !wr.writes():
		wr.saves.answerWaiters(w, o)
	case errors.Is(o.err, ErrStaleToken):
		return o.err
	case errors.Is(o.err, errOvertaken):
		wr.saves.refuseAll(o.err)
		return o.err
	default:
		wr.retries.failed(o.err)
		wr.saves.answerWaiters(w, o)
	}
	return nil
}

func (wr *writer) sized(bytes int64) { wr.do(func() { wr.saves.size = bytes }) }

// written records the outcome of a commit. It returns the restore whose content the page must load now, and an error after which this page
// may not keep its lease.
func (wr *writer) written(w *write, o outcome) (*restore, error) {
	holds := wr.leaseDone != nil // it may verify its lease
	if o.err != nil {
		if holds { // otherwise yield has done so, and another page may have saved the text since
			wr.changes.keep(w.since)
		}
		wr.saves.refuseRestores(o.err)
		switch {
		case !holds:
		case errors.Is(o.err, ErrStaleToken), errors.Is(o.err, lock.ErrNotAllowed):
			return nil, o.err
		default:
			wr.retries.failed(o.err)
		}
		return nil, nil
	}
	g := o.generation
	if holds {
		wr.refusals = 0
		wr.retries.recovered()
		wr.drafts.unsaved = unsaved{}
	} else {
		wr.clean(w)
	}
	wr.saved(w, g)
	if w.restore != nil && wr.restored(w) {
		return w.restore, nil
	}
	return nil, nil
}

// emptied makes this page save its text again if an error says that the storage was emptied.
func (wr *writer) emptied(err error) {
	if errors.Is(err, ErrEvicted) && wr.writes() {
		wr.changes.keep(wr.changes.now())
	}
}

// leave begins to give the lock away. A restore that has not begun is refused: the page's own text is handed over.
func (wr *writer) leave() {
	wr.enter(leaving)
	for i := len(wr.saves.restores) - 1; i >= 0; i-- {
		if wr.saves.writing == nil || wr.saves.writing.restore != wr.saves.restores[i] {
			wr.saves.answerRestore(wr.saves.restores[i], wr.refusal())
		}
	}
}

// due returns the time of the next write.
func (wr *writer) due() (time.Time, bool) {
	switch {
	case wr.saves.urgent, len(wr.saves.restores) > 0:
		return time.Now(), true
	case wr.unfenced:
		return wr.retries.retryAt, true
	case !wr.changes.dirty():
		return time.Time{}, false
	case wr.retries.failures > 0:
		return wr.retries.retryAt, true
	}
	return wr.changes.due(wr.config.Debounce, wr.config.Idle), true
}

// writeNext begins the write that is due.
func (wr *writer) writeNext() {
	wr.saves.limitRestore()
	switch {
	case wr.unfenced:
		wr.fence()
	case wr.restorable():
		wr.restoreNext()
	default:
		wr.write()
	}
}
