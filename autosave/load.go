package autosave

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
)

// had is the state of this page when it got the lock.
type had struct {
	known   *Generation // the last one that this page has written or loaded
	lineage string      // of the page's text; "" if that is unknown
	unsaved unsaved
}

// loaded is the result of load.
type loaded struct {
	newest   *Generation // nil if the store has no current one
	content  []byte      // set if foreign is set
	foreign  bool        // the page does not show newest: it must load content
	own      *Generation // made of the text that this page shows, with the changes up to marked
	trouble  error       // newest cannot be read, and content is of an earlier one; or a draft could not be saved
	unfenced error       // why the previous editor could not be fenced; nil if it was
	marked   int64
	unsaved  unsaved // text of this page that is not part of the content
	settled  bool    // the drafts could be read
	waiting  []Draft
	sides    []Conflict
}

// reloads is the maximum number of times that the content is loaded again because the user has typed meanwhile. After that the
// page itself keeps the text typed since the last snapshot, before it shows the content.
const reloads = 5

// load fences the previous editor and reads the content that it has left. The page may edit once that has succeeded.
func (s *Saver) load(l lock.Lease) {
	s.lease, s.leaseDone = l, l.Done()
	s.enter(loading)
	h := had{s.newest, s.lineage, s.unsaved}
	text := s.text
	s.background(func(ctx context.Context, step func(func()) bool) {
		next := s.config.Retry.Delays()
		for round := 0; ctx.Err() == nil; {
			began := s.config.Clock.Now()
			found, err := s.find(ctx, l, h)
			if err == nil {
				again := false
				round++
				renewal := s.renewLate(ctx, l, began)
				if !step(func() {
					// Text typed since the snapshot was taken belongs to it too.
					again = found.foreign && s.changes.dirty() && s.changes.count() != found.marked && round < reloads
					if s.loadedOwn(found, text); !again && s.mayGoOn(l, renewal) {
						s.edit(found)
					}
				}) || !again {
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
				s.failures++
				s.lastErr = err
				s.settle() // read-only for now; waiting callers get an answer
			})
			_ = wait.For(ctx, next())
		}
	})
}

// renewLate renews the lease if a heartbeat was due since began. A page that slept meanwhile may have lost its lease
// without knowing.
func (s *Saver) renewLate(ctx context.Context, l lock.Lease, began lock.Instant) error {
	if s.config.Clock.Now().Since(began) < l.HeartbeatInterval {
		return nil
	}
	return s.renew(ctx, l)
}

// find fences and reads for load. Drafts of pages that are gone become part of the content, or wait for a decision. If
// the newest generation is damaged, the newest good one replaces it. A store that can be read but not written, such as
// a full disk, does not keep the page from editing.
func (s *Saver) find(ctx context.Context, l lock.Lease, h had) (found loaded, err error) {
	ctx, stop := context.WithTimeout(ctx, writeLimit)
	defer stop()
	if err := s.config.Store.Fence(ctx, l.Token); err != nil {
		found.unfenced = asError(err, CodeWriteFailed, "the store could not be opened")
		if errors.Is(err, ErrStaleToken) {
			return found, found.unfenced
		}
	}
	r := &reconciler{Config: s.config, token: l.Token, owner: l.OwnerName}
	switch r.all, err = s.config.Store.List(ctx); {
	case err != nil && found.unfenced != nil:
		return found, found.unfenced
	case err != nil:
		return found, asError(err, CodeReadFailed, "what was saved could not be listed")
	}
	found.marked = s.changes.count()
	_, saved := current(r.all)
	dirty := s.changes.dirty() || !saved && h.known != nil // after the storage was emptied, only this page has the text
	if found.foreign = h.foreign(r.all, dirty); found.foreign {
		if err := s.keep(ctx, h, dirty, &found); err != nil {
			return found, err
		}
	} else {
		r.own = h.lineage
	}
	if err := s.reconcile(ctx, r, &found, dirty); err != nil {
		return found, err
	}
	return found, s.open(ctx, r, &found)
}

// open reads the content that the page must load. If no generation is whole, the page keeps its present text.
func (s *Saver) open(ctx context.Context, r *reconciler, found *loaded) error {
	found.waiting, found.sides = r.waiting, r.conflict
	if found.trouble == nil {
		found.trouble = r.trouble
	}
	g, saved := current(r.all)
	if !saved { // the others are history, which the user may restore
		return nil
	}
	found.newest = &g
	if !found.foreign {
		return nil
	}
	if err := r.load(ctx); err != nil {
		return err
	}
	if r.present.damage != nil {
		found.trouble = r.present.damage
	}
	found.content, found.foreign = r.present.bytes, r.present.whole
	return nil
}

// current returns the current generation, if there is one.
func current(all []Generation) (Generation, bool) {
	if len(all) == 0 || !all[0].Current {
		return Generation{}, false
	}
	return all[0], true
}

// foreign reports whether the page must load the current generation: it is neither the one that the page last wrote or
// loaded, nor an earlier state of the page's unsaved text.
func (h had) foreign(all []Generation, dirty bool) bool {
	g, saved := current(all)
	if !saved || h.known != nil && h.known.ID == g.ID {
		return false
	}
	return !dirty || h.lineage == "" || g.Draft != h.lineage
}

// keep stores the text that the page is about to lose because it must load another one. A page whose text was stored
// when it lost the lock may show something else by now.
func (s *Saver) keep(ctx context.Context, h had, dirty bool, found *loaded) (err error) {
	found.unsaved = h.unsaved
	if !dirty || found.marked == h.unsaved.marked && (h.unsaved.draft != nil || s.config.Drafts == nil) {
		return nil
	}
	found.unsaved = unsaved{marked: found.marked}
	if found.unsaved.draft, err = s.seal(ctx, CauseLockLost); errors.Is(err, ErrSnapshotFailed) {
		return err
	}
	found.trouble = err
	found.unsaved.text, err = s.snapshot(ctx)
	return err
}

// reconcile decides about the drafts. If the page goes on with its own unsaved text, that text is saved before any
// other draft is read.
func (s *Saver) reconcile(ctx context.Context, r *reconciler, found *loaded, dirty bool) error {
	listed := r.list(ctx)
	if errors.Is(r.trouble, ErrIncomplete) {
		return r.trouble
	}
	found.settled = r.trouble == nil && s.config.Drafts != nil
	if len(listed) == 0 || found.unfenced != nil {
		r.waiting = listed
		return nil //nolint:nilerr // the event that lets the page edit reports it; the drafts wait
	}
	if dirty && !found.foreign {
		g, err := s.config.Store.Commit(ctx, Commit{Take: s.config.Snapshot, Token: r.token, SavedAt: s.config.Clock.Now().Wall,
			OwnerName: r.owner, Limits: s.config.Limits})
		if errors.Is(err, ErrStaleToken) {
			return err
		}
		if err != nil {
			r.waiting, r.trouble = listed, asError(err, CodeWriteFailed, "what this page has could not be saved; the drafts of other pages wait")
			return nil
		}
		found.own = &g
		r.all = append([]Generation{g}, superseded(r.all)...)
	}
	before, _ := current(r.all)
	if err := r.run(ctx, listed); err != nil {
		return err
	}
	now, _ := current(r.all)
	if now.ID == before.ID {
		return nil
	}
	d := found.unsaved.draft
	if found.foreign = d == nil || d.ID != now.Draft; !found.foreign {
		found.own = &now // this page's own text became the content
	}
	return nil
}

// loadedOwn records that load has stored this page's own text.
func (s *Saver) loadedOwn(found loaded, text int64) {
	if d := found.unsaved.draft; d != nil && s.unsaved.draft != d {
		s.sealed(*d, text)
	}
	if found.unsaved.marked > s.unsaved.marked {
		s.unsaved = found.unsaved
	}
	if g := found.own; g != nil {
		if s.changes.count() == found.marked {
			s.changes.forget()
		}
		s.saved(&write{token: s.lease.Token, text: text}, *g)
	}
	if d := s.unsaved.draft; d != nil && found.settled && !slices.ContainsFunc(found.waiting, func(w Draft) bool { return w.ID == d.ID }) {
		s.unsaved = unsaved{marked: s.unsaved.marked} // it was merged, or it is the content
	}
}
