package lock

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
)

// bundle is a grant made of other grants. It is empty if an enclosing lease already holds everything that was wanted.
type bundle struct {
	parts []Grant
	lost  chan struct{}
	done  chan struct{}
	once  sync.Once
}

func newBundle(parts ...Grant) *bundle {
	b := &bundle{parts: parts, lost: make(chan struct{}), done: make(chan struct{})}
	var losing sync.Once
	for _, part := range parts {
		go func() {
			select {
			case <-part.Lost():
				losing.Do(func() { close(b.lost) })
			case <-b.done:
			}
		}()
	}
	return b
}

// Lost implements [Grant]. A bundle that has lost a part is lost.
func (b *bundle) Lost() <-chan struct{} { return b.lost }

// Release gives the parts back, the last one first.
func (b *bundle) Release(ctx context.Context) (err error) {
	b.once.Do(func() {
		close(b.done)
		err = freeAll(ctx, b.parts)
	})
	return err
}

// Look implements [Grant].
func (b *bundle) Look(ctx context.Context, since Instant) error {
	for _, part := range b.parts {
		if err := stillGranted(ctx, part, since); err != nil {
			return err
		}
	}
	return nil
}

// stillGranted fails if a grant was stolen before its lease had a token. since is the time at which the token arrived.
// The token may be higher than that of the client that stole the lock, so no lease may begin with it.
func stillGranted(ctx context.Context, g Grant, since Instant) error {
	if err := g.Look(ctx, since); err != nil {
		return err
	}
	if wait.Closed(g.Lost()) {
		return errStolen
	}
	return nil
}

var errStolen = &Error{Code: CodeDenied, Detail: "another owner took it over at the same moment"}

// promptly is how long a grant and its claim take if nothing delays them. If they take longer, the page may have been
// frozen. It is shorter than the half second that a holder has to notice that its lock was stolen.
const promptly = 250 * time.Millisecond

// catchUp waits for a round trip to the Locker if a grant took long, or depends on older grants. A page that wakes may
// receive its grant and its token before the message that the lock was stolen while the page was frozen.
func (m *Manager) catchUp(ctx context.Context, t *target, since Instant, nested bool) {
	if nested || m.config.Clock.Now().Since(since) >= promptly {
		_, _ = bounded(ctx, answerLimit, t.nearest().Query) // the answer arrives after that message
	}
}

func freeAll(ctx context.Context, grants []Grant) error {
	var errs []error
	for i := len(grants) - 1; i >= 0; i-- {
		errs = append(errs, grants[i].Release(ctx))
	}
	return joined(errs...)
}
