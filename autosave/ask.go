package autosave

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// maxAsks is the maximum number of times that a page asks in one request, if one page after the other becomes the editor.
const maxAsks = 4

// EditOptions configure a request for the lock.
type EditOptions struct {
	// Force steals the lock if the holder does not answer within Grace, but not if it refuses.
	Force bool
	Grace time.Duration // how long to wait for an answer; default 5 s
}

// RequestEdit asks the page that edits to save and hand over. It returns when this page edits and the listener has
// received the last saved content. It returns at once if this page edits already.
//
// Pages that edit a document around or below this one are asked in the same way, all of them at once. This page takes
// the lock when each of them has offered it.
//
// A page that becomes the editor meanwhile is asked as well, and has as much time to answer. A page that is suspended
// or closed, or whose ctx ends, no longer becomes the editor by its request.
//
// Errors match ErrHandoverRefused, ErrHandoverBusy (another page asked before),
// ErrHandoverNoAnswer, ErrReadOnly (offered, but the lock could not be acquired),
// ErrAborted with the cause of ctx, ErrDisabled or ErrDisposed. RequestEdit takes at most
// Grace and nine seconds, and some twenty seconds more for each of at most four pages that answer.
func (s *Saver) RequestEdit(ctx context.Context, opts EditOptions) error {
	return newAsker(&s.page, opts).run(ctx)
}

// ask is the part of a request for the lock that the loop uses too. Once the request is withdrawn, this page does not acquire the lock by it.
type ask struct {
	round     string
	force     bool
	grace     time.Duration
	answers   chan Message       // has room for every possible answer
	withdrawn chan struct{}      // closed when the page is suspended
	rivals    map[string]Message // other pages that asked meanwhile, by round; nil: they are turned away
}

// receive queues an answer for the asker. It drops answers beyond those that are possible.
func (a *ask) receive(m Message) {
	select {
	case a.answers <- m:
	default:
	}
}

// asker makes one request for the lock. Its methods run on the goroutine of RequestEdit.
type asker struct {
	*page
	own        *ask // peers.asking is another one, or nil, once this request has ended or is withdrawn
	promises   promises
	deadline   *time.Timer // until then the editors have time to answer
	count      int         // how often this page has asked
	at         time.Time   // when this page last asked
	remote     bool        // an editor on another machine has accepted
	forced     bool        // this page takes the lock without an offer
	notAllowed bool        // the server has refused this page, which does not wait for its turn
}

func newAsker(p *page, opts EditOptions) *asker {
	grace := cmp.Or(opts.Grace, DefaultGrace)
	own := &ask{round: lock.NewID(), force: opts.Force, grace: grace, answers: make(chan Message, 16), withdrawn: make(chan struct{}), rivals: make(map[string]Message)}
	return &asker{page: p, own: own, promises: promises{grace: grace, byLease: make(map[string]promise)}}
}

// run asks, and returns when this page edits or the request has failed.
func (r *asker) run(ctx context.Context) error {
	verdict, err := r.start(ctx)
	if verdict == nil {
		return err
	}
	defer r.do(func() {
		if r.asking == r.own {
			r.asking = nil
		}
	})
	if r.config.NoStandby || r.notAllowed {
		// Nobody would answer if nobody held it.
		if done, err := r.tryFree(ctx); done {
			return err
		}
		defer r.queueRemotely(ctx)()
	}
	err = r.negotiate(ctx, verdict)
	if err != nil {
		r.post(Message{Kind: EditCancelled, Round: r.own.round})
	}
	return err
}

// start asks the page that edits. A page that releases its lock or hands it over waits until that has ended, and asks then. A page that
// has just lost the lock gets autosave:readonly first. start returns the verdict to wait for. It returns nil if there is nothing to wait
// for: after an error, or if this page edits.
func (r *asker) start(ctx context.Context) (verdict chan struct{}, err error) {
	var at role
	begin := func() {
		at, verdict = r.role, r.verdict
		switch {
		case at == editing, at == suspended, at == leaving:
		case r.preparingReadonly:
			at = leaving
		case r.asking != nil:
			at = ended
		default:
			r.asking = r.own
			r.notAllowed = errors.Is(r.retries.lastErr, lock.ErrNotAllowed)
			r.promises.allow("", r.own.grace)
			if r.holder != nil {
				r.promises.allow(r.holder.LeaseID, r.own.grace)
			}
			r.request()
		}
	}
	for at = leaving; at == leaving; {
		if !r.do(begin) {
			return nil, r.whyEnded()
		}
		if at == leaving {
			if err := r.await(ctx, verdict); err != nil {
				return nil, err
			}
		}
	}
	switch at {
	case editing:
		return nil, nil
	case suspended:
		return nil, errSuspended
	case ended:
		return nil, &Error{Code: CodeHandoverBusy, Detail: "this page has asked already"}
	}
	return verdict, nil
}

var errSuspended = &Error{Code: CodeReadOnly, Detail: "this page is suspended; resume it first"}

// request asks all editors.
func (r *asker) request() {
	r.count++
	r.at = time.Now()
	r.repeat()
}

// repeat sends the last question again, for pages that did not receive it.
func (r *asker) repeat() {
	r.post(Message{Kind: EditRequest, Round: r.own.round, Force: r.own.force, Grace: r.own.grace, Question: r.count})
}

// askAgain asks once more, and gives the editor with that lease time to answer. It ends the request if this page has asked too often, even with
// force. Force takes nothing from an editor that was not asked, and nothing from an editor that answers.
func (r *asker) askAgain(lease string, pause time.Duration) (done bool, err error) {
	if r.count == maxAsks {
		return true, &Error{Code: CodeHandoverNoAnswer, Detail: "several pages became the editor one after the other, or answered too late; ask again"}
	}
	if lease != "" {
		r.promises.allow(lease, pause)
	}
	r.do(r.request)
	r.deadline.Reset(pause)
	return false, nil
}

// tryFree takes the lock if nobody holds it.
func (r *asker) tryFree(ctx context.Context) (done bool, err error) {
	if r.config.whoEdits(ctx, inspectLimit) != nil {
		return false, nil
	}
	err = r.take(ctx, false)
	return !errors.Is(err, ErrReadOnly) || errors.Is(err, context.DeadlineExceeded), err
}

// negotiate waits for the answers of the editors and takes the lock when it may.
func (r *asker) negotiate(ctx context.Context, verdict chan struct{}) error {
	r.deadline = time.NewTimer(r.own.grace)
	defer r.deadline.Stop()
	for {
		select {
		case <-verdict: // its turn came without a handover
			if !r.readOnly.Load() {
				return nil
			}
			r.do(func() { verdict = r.verdict })
		case m := <-r.own.answers:
			if done, err := r.handleAnswer(ctx, m); done {
				return err
			}
		case <-r.deadline.C:
			if r.own.force && r.outranked() { // checked before it looks for editors: the other page may edit by then, and was not asked
				return &Error{Code: CodeHandoverBusy, Detail: "another page takes it over at this moment"}
			}
			if done, err := r.takeOffered(ctx); done {
				return err
			}
		case <-ctx.Done():
			return &Error{Code: CodeAborted, Detail: "the caller gave up", Err: context.Cause(ctx)}
		case <-r.own.withdrawn:
			return errSuspended
		case <-r.gone:
			return r.whyEnded()
		}
	}
}

// handleAnswer handles an answer, and reports whether it ends the request.
func (r *asker) handleAnswer(ctx context.Context, m Message) (done bool, err error) {
	switch m.Kind {
	case EditAccepted:
		limit := vetoLimit + handoverLimit + r.own.grace
		r.remote = m.Remote
		r.promises.allow(m.Detail, limit)
		r.deadline.Reset(limit)
	case EditSilent:
		return true, &Error{Code: CodeHandoverNoAnswer, Detail: m.Detail}
	case EditRefused:
		return true, &Error{Code: CodeHandoverRefused, Detail: m.Detail}
	case EditBusy:
		return true, &Error{Code: CodeHandoverBusy, Detail: "another page asked before"}
	case EditGranted:
		if m.Question > 0 && m.Question != r.count {
			return false, nil // an offer for a former question may be over; the page answers the last one, too
		}
		until := r.at.Add(offerLimit)
		if time.Until(until) <= 0 {
			// The offer may have expired while this page slept: ask again. A page that still offers the lock repeats its offer.
			return r.askAgain(m.Detail, r.own.grace)
		}
		r.promises.recordOffer(m, until)
		if len(m.Document) <= len(r.config.document()) && r.stillOffers(ctx) && time.Until(until) > 0 { // otherwise there may be more editors
			return r.steal(ctx)
		}
		return r.takeOffered(ctx)
	case EditLeft:
		r.promises.editorChanged(m)
		if r.config.NoStandby { // otherwise its turn comes without a handover, or the turn of another page, which is then asked
			return r.tryFree(ctx)
		}
	case Edits:
		r.promises.editorChanged(m)
		return r.askAgain(m.Holder.LeaseID, r.own.grace)
	}
	return false, nil
}

// takeOffered takes the lock if all editors have offered it or, by force, have used up their time. It reports whether
// that ends the request. Otherwise it sets the timer to the end of their time.
func (r *asker) takeOffered(ctx context.Context) (done bool, err error) {
	editors := r.config.editors(ctx, lateInspectLimit)
	if len(r.own.answers) > 0 { // handle them first: this page may have slept until now
		r.deadline.Reset(time.Millisecond)
		return false, nil
	}
	pause, offered, again := r.promises.evaluate(editors)
	switch {
	case again:
		return r.askAgain("", pause)
	case pause > 0:
		r.deadline.Reset(pause)
		return false, nil
	case offered:
	case !r.own.force || r.remote:
		if r.config.NoStandby && r.config.remoteStore() == nil { // otherwise this page is in the queue
			if done, err := r.tryFree(ctx); done {
				return true, err
			}
		}
		return true, &Error{Code: CodeHandoverNoAnswer, Detail: "the page that edits does not answer; force takes the lock from it"}
	}
	r.forced = !offered
	return r.steal(ctx)
}

// stillOffers reports whether the offer that has just arrived is still valid. The page that made it may be closed by now, and another page may
// edit. stillOffers finds out which pages edit. The offer is not valid if one of them was not asked, or if another answer has arrived. An
// editor that was asked is no obstacle: its lock and the offered one exclude each other, so it edited before the page that offers the lock now.
// The look is short, unless nobody edits or the editor is slow to name its lease.
func (r *asker) stillOffers(ctx context.Context) bool {
	for _, limit := range []time.Duration{inspectLimit, lateInspectLimit} {
		editors := r.config.editors(ctx, limit)
		if slices.ContainsFunc(editors, func(h lock.Holder) bool { _, asked := r.promises.byLease[h.LeaseID]; return h.LeaseID != "" && !asked }) {
			return false
		}
		if len(editors) > 0 && editors[0].LeaseID != "" { // those without a name come first
			break
		}
	}
	return len(r.own.answers) == 0
}

// outranked reports whether another page is about to take the lock by force as well. The page with the lowest round
// takes it.
func (r *asker) outranked() (yes bool) {
	r.do(func() {
		for round, m := range r.own.rivals {
			yes = yes || m.Force && round < r.own.round
		}
	})
	return yes
}
