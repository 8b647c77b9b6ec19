package autosave

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
)

// Suspend is for a page that enters the back/forward cache (pagehide with persisted) and may come back. It saves unsaved
// changes, releases the lock and leaves the queue: nobody waits for a page that cannot run. It returns when that is done,
// or with the cause when ctx ends. The lock is released in any case. Until Resume the page is read-only. The error is the
// error of saving. Text that was not saved is kept and offered again.
func (s *Saver) Suspend(ctx context.Context) error {
	err := s.depart(ctx, suspended)
	if errors.Is(err, ErrDisposed) || errors.Is(err, ErrDisabled) {
		return nil
	}
	return err
}

// depart saves for the last time, releases the lock and takes the role.
func (p *page) depart(ctx context.Context, r role) error {
	ctx, stop := bounded(ctx)
	defer stop()
	var lease lock.Lease
	var asker string
	if !p.do(func() {
		p.departing++
		asker = p.endHandover()
		if p.writes() || p.verifying() {
			p.leave()
		}
	}) {
		return p.whyEnded()
	}
	err := p.keepLast(ctx, r, p.flushLast(ctx))
	if !p.do(func() {
		lease = p.lease // its release may be under way
		before := p.retries.lastErr
		p.departing--
		p.yield(r, before)
		p.announceVerdict()
	}) {
		return p.whyEnded()
	}
	err = errors.Join(err, lease.Release(ctx))
	if asker != "" {
		p.post(Message{Kind: EditLeft, Round: asker})
	}
	return err
}

// Resume is for a page that runs again (pageshow, resume). It returns when the Saver knows whether the page may edit; until
// then the page is read-only. A page that was suspended acquires the lock again, even if Suspend has not returned yet. A page
// that was frozen while it had the lock verifies its lease.
func (s *Saver) Resume(ctx context.Context) error {
	ctx, stop := bounded(ctx)
	defer stop()
	for leaves := true; leaves; {
		var verdict chan struct{}
		if !s.do(func() {
			leaves = s.role == leaving || s.departing > 0
			switch {
			case leaves, s.role == starting, s.role == loading:
				verdict = s.verdict
			case s.role == suspended:
				verdict = s.verdict
				s.begin()
			case s.role == editing:
				verdict = s.verdict
				s.verify()
			}
		}) {
			return s.whyEnded()
		}
		if verdict == nil {
			return nil
		}
		select {
		case <-verdict:
		case <-s.gone:
			return s.whyEnded()
		case <-ctx.Done():
			return late(ctx, CodeReadFailed, theStore)
		}
	}
	return nil
}

// verify renews the lease before the page may go on.
func (p *page) verify() {
	lease := p.lease
	p.enter(starting)
	p.background(func(ctx context.Context, step func(func()) bool) {
		err := renew(ctx, lease)
		step(func() {
			if p.mayGoOn(lease, err) {
				p.enter(editing)
				p.announceVerdict()
			}
		})
	})
}

// mayGoOn reports whether the page still has its lease, after a renewal that ended with err. If not, the page becomes a
// viewer, or acquires the lock again.
func (p *page) mayGoOn(lease lock.Lease, err error) bool {
	switch {
	case wait.Closed(lease.Done()):
		p.lost()
	case err != nil && !errors.Is(err, lock.ErrRenewFailed):
		p.regain(err) // the state of the lease is unknown
	default:
		return true
	}
	return false
}

// finish ends a page that has departed. It closes the returned channel when nothing runs any more.
func (s *Saver) finish() <-chan struct{} {
	s.end()
	<-s.gone
	done := make(chan struct{})
	go func() { s.work.Wait(); s.events.queue.Close(); close(done) }()
	return done
}

// discard releases the lock of a Saver that never began. It does not wait for a store or a lock that hangs. A lock that
// is granted later is released at once.
func (s *Saver) discard() {
	ctx, stop := context.WithTimeout(context.Background(), 2*answerLimit)
	defer stop()
	_ = s.depart(ctx, ended)
	s.finish()
}

// Dispose saves unsaved changes, releases the lock and ends. It returns when that is done, or with the cause when ctx
// ends. The error is the error of saving or releasing. Dispose may be called again: then it returns the result of the call that has ended
// this page.
func (s *Saver) Dispose(ctx context.Context) error {
	ctx, stop := bounded(ctx)
	defer stop()
	err := s.depart(ctx, ended)
	switch err {
	case ErrDisabled: //nolint:errorlint // a wrapped one comes from the editor or the lock, and this call ends the page
		s.events.queue.Close()
		return nil
	case ErrDisposed:
		return s.disposal(ctx)
	}
	select {
	case <-s.finish():
	case <-ctx.Done():
		err = errors.Join(err, context.Cause(ctx))
	}
	s.disposeErr = err
	close(s.disposed)
	return err
}

// disposal waits for the call of Dispose that ends this page, and returns its result: only that call knows whether all is stored.
func (s *Saver) disposal(ctx context.Context) error {
	select {
	case <-s.disposed:
		return s.disposeErr
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
