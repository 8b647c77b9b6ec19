package autosave

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
)

// begin finds out whether this page may write. It does not wait for another editor, only for the release of its own last lease.
func (p *page) begin() {
	p.enter(starting)
	p.acquireAgain()
}

// acquireAgain acquires the lock if nobody holds it after the last lease of this page was released.
func (p *page) acquireAgain() {
	last := p.lease
	p.background(func(_ context.Context, step func(func()) bool) {
		giveBack(last)
		step(p.acquireFree)
	})
}

// acquireFree acquires the lock if nobody holds it.
func (p *page) acquireFree() {
	opts := p.config.Lock
	opts.IfAvailable, opts.Timeout, opts.Steal = true, lock.NoWait, false
	p.acquire(opts)
}

// acquire asks for the lock once. The answer makes this page the editor or a viewer.
func (p *page) acquire(opts lock.AcquireOptions) {
	opts.After = p.after
	p.background(func(ctx context.Context, step func(func()) bool) {
		lease, err := p.config.Locks.Acquire(ctx, opts)
		switch {
		case err != nil:
			step(func() { p.readonly(lock.ReasonAcquireFailed, err) })
		case !step(func() { p.load(lease) }):
			giveBack(lease)
		}
	})
}

// standby waits in the queue until it is this page's turn. It first pauses: for the given time, or longer if the store
// has repeatedly refused the tokens of this page.
func (p *page) standby(pause time.Duration) {
	if p.config.NoStandby || errors.Is(p.retries.lastErr, lock.ErrUnsupported) || errors.Is(p.retries.lastErr, lock.ErrWebLockUnsupported) ||
		errors.Is(p.retries.lastErr, lock.ErrInvalidArgument) || errors.Is(p.retries.lastErr, lock.ErrNotAllowed) {
		return
	}
	p.lineUp(pause)
}

// lineUp joins the queue after the pause.
func (p *page) lineUp(pause time.Duration) {
	p.queued = true
	opts := p.config.Lock
	opts.IfAvailable, opts.Steal, opts.Timeout = false, false, standbyLimit
	opts.Backoff.MaxRetries = lock.Unlimited
	opts.After = p.after
	if p.refusals > 1 {
		pause = max(pause, p.refusalPause())
	}
	p.background(func(ctx context.Context, step func(func()) bool) {
		next := p.config.Retry.Delays()
		_ = wait.For(ctx, pause)
		for ctx.Err() == nil {
			lease, err := p.config.Locks.Acquire(ctx, opts)
			if err == nil {
				if !step(func() { p.load(lease) }) {
					giveBack(lease)
				}
				return
			}
			if errors.Is(err, lock.ErrNotAllowed) || errors.Is(err, lock.ErrInvalidArgument) { // the lease around it has ended
				step(func() { p.readonly(lock.ReasonAcquireFailed, err) })
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
func (p *page) refused(err error) {
	var later *LaterToken
	if errors.As(err, &later) {
		p.after = max(p.after, later.Token)
	}
	if p.refusals++; p.refusals == 1 {
		p.refusalPause = p.config.Retry.Delays()
	}
	if p.role == loading && p.refusals == 1 {
		p.regain(err)
		return
	}
	p.stepBack(err, 0)
}

// stepBack releases the lease, if there is one, and after a pause waits for the next turn. The page gets an event
// unless it knows already that it may not edit.
func (p *page) stepBack(err error, pause time.Duration) {
	p.release()
	if !p.knowsReadonly {
		p.readonly(lock.ReasonLeaseLost, err)
		return
	}
	p.yield(viewing, err)
	p.announceVerdict()
	p.standby(pause)
}

// regain releases the lease and acquires another one, unless another page takes it meanwhile.
func (p *page) regain(err error) {
	p.yield(starting, err)
	p.acquireAgain()
}
