package lock

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
)

// bundle is a grant made of others; it may be empty, where all that was wanted is held
// by an enclosing lease.
type bundle struct {
	slot  int
	local Grant // where it holds elsewhere too, that of this machine, and
	far   Far
	parts []Grant
	lost  chan struct{}
	done  chan struct{}
	once  sync.Once
}

func newBundle(slot int, parts ...Grant) *bundle {
	b := &bundle{slot: slot, parts: parts, lost: make(chan struct{}), done: make(chan struct{})}
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

// Lost implements [Grant]: what has lost a part is lost.
func (b *bundle) Lost() <-chan struct{} { return b.lost }

// Release gives the parts back, the last one first.
func (b *bundle) Release(ctx context.Context) (err error) {
	b.once.Do(func() {
		close(b.done)
		err = freeAll(ctx, b.parts)
	})
	return err
}

// stillGranted fails where a grant was taken away before its lease had a token, at since. The
// token may be higher than the thief's: it must never become a lease.
func stillGranted(ctx context.Context, g Grant, since Instant) error {
	switch g := g.(type) {
	case *bundle:
		for _, part := range g.parts {
			if err := stillGranted(ctx, part, since); err != nil {
				return err
			}
		}
	case LateGrant:
		if err := g.Look(ctx, since); err != nil {
			return err
		}
	}
	if wait.Closed(g.Lost()) {
		return &Error{Code: CodeDenied, Detail: "another owner took it over at the same moment"}
	}
	return nil
}

// promptly is how long a grant and its claim take where nothing holds them up. After longer, the page may have been frozen.
const promptly = time.Second

// catchUp waits for a round trip to the keeper of the lock if a grant has taken long since it was asked for: a page that
// wakes may find its grant and its token before the message that a thief came while it was frozen.
func (m *Manager) catchUp(ctx context.Context, b Backend, since Instant) {
	if m.config.Clock.Now().Since(since) >= promptly {
		_, _ = bounded(ctx, answerLimit, b.beneath().Locker.Query) // the answer comes after that message
	}
}

func freeAll(ctx context.Context, grants []Grant) error {
	var errs []error
	for i := len(grants) - 1; i >= 0; i-- {
		errs = append(errs, grants[i].Release(ctx))
	}
	return first(errs...)
}
