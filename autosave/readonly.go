package autosave

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast/lock"
)

// lost is called when the lease has ended.
func (p *page) lost() {
	err, reason := p.lease.Err(), lock.ReasonLeaseLost
	if errors.Is(err, lock.ErrStale) {
		reason = lock.ReasonRenewFailed
	}
	if err == nil {
		err = &lock.Error{Code: lock.CodeLost, Operation: lock.OpRenew, Resource: p.lease.Resource, Detail: "the lease was released"}
	}
	p.readonly(reason, err)
}

// readonly makes this page a viewer and notifies it, with the text that it could not save.
func (p *page) readonly(reason lock.ReadonlyReason, err error) {
	l := loss{p.changes.dirty() || p.saves.saving(), p.changes.count(), p.drafts.text, p.lossCause(err)}
	p.yield(viewing, err)
	named := make(chan struct{})
	p.holder, p.unnamed, p.preparingReadonly = nil, named, true
	p.retries.failures, p.retries.next = 0, p.config.Retry.Delays()
	p.emitPhase(p.phase())
	p.background(func(ctx context.Context, step func(func()) bool) {
		previewed := make(chan struct{})
		p.work.Go(func() { defer close(previewed); p.preview(ctx, reason, step) })
		holder := p.gather(ctx, l, named, previewed)
		step(func() {
			p.unnamed, p.preparingReadonly = nil, false
			if p.holder == nil { // otherwise the new editor has announced itself
				p.holder = holder
			}
			what := EventReadonly
			if p.knowsReadonly && reason != lock.ReasonAcquireFailed { // the page has not edited since the last one
				what = EventPhase
			}
			p.knowsReadonly = true
			p.emit(Event{Type: what, Reason: reason, Err: err, Holder: p.holder, Unsaved: p.drafts.unsaved.text})
			switch dirty := p.changes.dirty(); {
			case dirty && !l.dirty: // the page reported a change while the lock was lost
				l.dirty, l.marked = true, p.changes.count()
				p.work.Go(func() { p.keepLoss(l) })
			case !dirty && reason != lock.ReasonAcquireFailed:
				p.drafts.awaitsLateMark = true // of the text that it has saved
			}
			p.announceVerdict()
			p.standby(0)
		})
		p.findEditor(ctx, step)
		<-previewed // ctx ends with this function
	})
}

// findEditor repeats the question which page edits, if the answer did not arrive in time for autosave:readonly, as on a busy
// machine.
func (p *page) findEditor(ctx context.Context, step func(func()) bool) {
	for range inspectRetries {
		answered := true
		if !step(func() { answered = p.holder != nil && p.holder.LeaseID != "" }) || answered {
			return
		}
		if h := p.config.whoEdits(ctx, lateInspectLimit); h != nil && h.LeaseID != "" {
			step(func() { p.named(*h) })
		}
	}
}

// yield ends everything that this page did as an editor or in order to become one.
func (p *page) yield(r role, err error) {
	p.stop()
	p.enter(r)
	if w := p.saves.writing; w != nil {
		w.stop()
		if p.leaseDone != nil && w.restore == nil { // it may fail
			p.changes.keep(w.since)
		}
	}
	p.leaseDone, p.retries.lastErr = nil, err
	p.held.Store(nil)
	p.endHandover()
	if r == suspended {
		p.withdraw()
	}
	p.saves.refuseAll(p.refusal())
}

// gather finds out which page edits, and takes the text that this page could not save. Both have little time, because
// the page must be notified. A later answer is kept. A preview that is ready in that time comes before
// autosave:readonly.
func (p *page) gather(ctx context.Context, l loss, named, previewed chan struct{}) *lock.Holder {
	limited, stop := context.WithTimeout(ctx, noticeLimit)
	defer stop()
	holders := make(chan *lock.Holder, 1)
	go func() { holders <- p.config.whoEdits(ctx, inspectLimit) }()
	kept := make(chan struct{})
	if l.dirty {
		p.work.Go(func() { defer close(kept); p.keepLoss(l) })
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
