package lock

import (
	"context"
	"time"
)

// pendingRequest is a request to a Locker in progress.
type pendingRequest struct {
	answers   chan answer
	abandoned chan struct{}
	stop      context.CancelFunc
}

type answer struct {
	grant *granted
	err   error
}

// request makes a request on a goroutine of its own, so that a Locker that never answers blocks nobody. The caller must
// abandon the request in the end. A grant that the caller has not taken until then is given back.
func (m *Manager) request(ctx context.Context, ask func(context.Context) (*granted, error)) *pendingRequest {
	ctx, stop := context.WithCancel(ctx)
	p := &pendingRequest{answers: make(chan answer), abandoned: make(chan struct{}), stop: stop}
	m.work.Go(func() {
		grant, err := ask(ctx)
		select {
		// Unbuffered: either the caller takes the grant, or this goroutine still owns it.
		case p.answers <- answer{grant, err}:
		case <-p.abandoned:
			if err == nil {
				m.giveBack(grant.grant)
			}
		}
	})
	return p
}

// wait returns the answer, or the cause when ctx ends.
func (p *pendingRequest) wait(ctx context.Context) (*granted, error) {
	select {
	case answer := <-p.answers:
		return answer.grant, answer.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (p *pendingRequest) abandon() {
	close(p.abandoned)
	p.stop()
}

// giveBack releases a grant that becomes nobody's lease.
func (m *Manager) giveBack(g Grant) {
	_ = boundedErr(context.Background(), answerLimit, g.Release)
}

// tidy runs f to its end on a goroutine of the manager, and waits for it as long as ctx lasts. So a mechanism that
// hangs during the cleanup blocks nobody.
func (m *Manager) tidy(ctx context.Context, f func()) {
	done := make(chan struct{})
	m.work.Go(func() { defer close(done); f() })
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// bounded calls f and returns its result, or the cause once ctx or the limit ends, even if f ignores its context.
func bounded[T any](ctx context.Context, limit time.Duration, f func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	ctx, stop := context.WithTimeoutCause(ctx, limit, errNoAnswer)
	defer stop()
	done := make(chan result, 1)
	go func() {
		value, err := f(ctx)
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// boundedErr is bounded for a function that only returns an error.
func boundedErr(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	_, err := bounded(ctx, limit, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) })
	return err
}
