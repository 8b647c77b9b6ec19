package autosave

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
)

// reloads is the maximum number of times that the content is loaded again because the user has typed or decided about a draft meanwhile.
// After that the page itself keeps the text typed since the last snapshot, before it shows the content.
const reloads = 5

// load fences the previous editor and reads the content that it has left. The page may edit once that has succeeded.
func (p *page) load(l lock.Lease) {
	p.lease, p.leaseDone = l, l.Done()
	p.saves.writing = nil // the outcome of a write under a former lease says nothing about this one; load finds what it has saved
	p.enter(loading)
	p.background(func(ctx context.Context, step func(func()) bool) {
		next := p.config.Retry.Delays()
		for round := 0; ctx.Err() == nil; {
			var in loader
			var revision int64
			if !step(func() {
				in = loader{&p.config, &p.changes, p.decisions, l, p.newest, p.drafts.lineage, p.drafts.unsaved}
				revision = p.drafts.revision
			}) {
				return
			}
			began := p.config.Clock.Now()
			found, err := in.find(ctx)
			if err == nil {
				var again bool
				round++
				renewal := in.renewLate(ctx, began)
				step(func() {
					// Text typed since the snapshot was taken belongs to it too, and a draft may be decided about by now.
					again = (found.foreign && p.changes.count() != found.marked || p.drafts.revision != revision) && round < reloads
					if p.loadedOwn(found); !again && p.departing == 0 && p.mayGoOn(l, renewal) {
						p.edit(found)
					}
				})
				if !again {
					return
				}
				continue
			}
			step(func() {
				switch {
				case errors.Is(err, ErrStaleToken):
					p.refused(err)
					return
				case errors.Is(err, lock.ErrNotAllowed):
					p.stepBack(err, 0)
					return
				}
				p.retries.failures++
				p.retries.lastErr = err
				p.announceVerdict() // read-only for now; waiting callers get an answer
			})
			_ = wait.For(ctx, next())
		}
	})
}
