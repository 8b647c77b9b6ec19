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
func (s *Saver) load(l lock.Lease) {
	s.lease, s.leaseDone = l, l.Done()
	s.saves.writing = nil // the outcome of a write under a former lease says nothing about this one; load finds what it has saved
	s.enter(loading)
	s.background(func(ctx context.Context, step func(func()) bool) {
		next := s.config.Retry.Delays()
		for round := 0; ctx.Err() == nil; {
			var in loader
			var news int64
			if !step(func() {
				in = loader{&s.config, &s.changes, s.adopted, l, s.newest, s.drafts.lineage, s.drafts.unsaved}
				news = s.drafts.news
			}) {
				return
			}
			began := s.config.Clock.Now()
			found, err := in.find(ctx)
			if err == nil {
				var again bool
				round++
				renewal := in.renewLate(ctx, began)
				step(func() {
					// Text typed since the snapshot was taken belongs to it too, and a draft may be decided about by now.
					again = (found.foreign && s.changes.count() != found.marked || s.drafts.news != news) && round < reloads
					if s.loadedOwn(found); !again && s.mayGoOn(l, renewal) {
						s.edit(found)
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
					s.refused(err)
					return
				case errors.Is(err, lock.ErrNotAllowed):
					s.stepBack(err, 0)
					return
				}
				s.retries.failures++
				s.retries.lastErr = err
				s.settle() // read-only for now; waiting callers get an answer
			})
			_ = wait.For(ctx, next())
		}
	})
}
