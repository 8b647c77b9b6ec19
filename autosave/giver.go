package autosave

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
)

// giver hands the lock of this page over to another page. Its methods run on a goroutine of its own, and finish on the loop.
type giver struct {
	*page
	own *handing // peers.handing is another one, or nil, once this handover has ended
}

// prepare returns an error if the lock must not be handed over, and nil if it was offered but not taken in time.
func (g *giver) prepare(ctx context.Context) error {
	if err := g.config.veto(ctx, g.own.to); err != nil {
		return err
	}
	if !g.leaveFor(ctx) {
		return nil
	}
	if err := g.saveLast(ctx); err != nil {
		return err
	}
	var taken <-chan struct{}
	g.do(func() {
		if g.handing == g.own && g.role == leaving {
			taken, g.own.offer = g.leaseDone, time.NewTimer(handoverLimit)
			g.grant(g.own)
		}
	})
	if taken != nil {
		select {
		case <-taken:
		case <-g.own.offer.C:
		case <-ctx.Done():
		}
	}
	return nil
}

// saveLast saves all text of the page, in the time that the asking page allows for that.
func (g *giver) saveLast(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, handoverLimit+draftLimit+releaseLimit)
	defer stop()
	for range reloads {
		if err := g.flushLast(ctx); err != nil {
			return err
		}
		if !g.unreported(ctx) {
			break
		}
		g.mark()
	}
	return nil
}

// unreported reports whether the page has text that it has not reported yet, after it has learned that it may not edit. unreported stores that
// text as a draft, and the next save contains it.
func (g *giver) unreported(ctx context.Context) bool {
	ctx, stop := before(ctx, draftLimit, draftLimit+releaseLimit)
	defer stop()
	if g.events.handled(ctx) != nil {
		return false
	}
	draft, _ := g.config.seal(ctx, CauseLockLost) // after an error, the text becomes a draft when the lock is lost
	return draft != nil
}

// leaveFor makes this page a leaving one, and reports whether it is. It waits for a page that is verifying its lease. It fails if the handover
// ends before.
func (g *giver) leaveFor(ctx context.Context) bool {
	for ctx.Err() == nil {
		left := false
		var verdict chan struct{}
		g.do(func() {
			verdict = g.verdict
			if left = g.role == editing && ctx.Err() == nil; left { // otherwise the handover has ended meanwhile
				g.leave()
				g.emitPhase(g.phase())
			}
		})
		if left {
			return true
		}
		select {
		case <-verdict:
		case <-ctx.Done():
		}
	}
	return false
}

// finish ends the handover, which failed with err if it is not nil. It returns the request that came meanwhile, if this page can answer it
// now.
func (g *giver) finish(err error) (next *Message) {
	if g.handing != g.own {
		return nil // the lock was taken
	}
	if wait.Closed(g.leaseDone) {
		g.lost()
		return nil
	}
	if g.handing = nil; g.role == leaving {
		g.enter(editing)
		g.announceVerdict()
	}
	if err != nil {
		g.post(Message{Kind: EditRefused, Round: g.own.round, Detail: err.Error()})
	}
	return g.own.next
}
