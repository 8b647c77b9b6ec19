package autosave

import (
	"bytes"
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
)

// loaded is what was found when this page had got the lock.
type loaded struct {
	newest   *Generation // nil where the store has no current one
	content  []byte
	foreign  bool  // the page does not show newest: it has to load content
	damage   error // newest cannot be read; content is of one before it, or there is none
	unfenced error // why the editor before could not be shut out; nil: it was
	unsaved  []byte
	rescued  *Rescued // that is unsaved
	taken    bool     // unsaved is what the page has; else it has nothing of its own
	marked   int64
}

// load shuts out the editor before and reads what it has left. Until that has worked
// the page is not told that it may edit.
func (s *Saver) load(l lock.Lease) {
	s.lease, s.leaseDone = l, l.Done()
	s.enter(loading)
	known, has := s.newest, int64(0)
	if s.unsaved != nil {
		has = s.unsavedMark
	}
	s.background(func(ctx context.Context, step func(func()) bool) {
		next := s.config.Retry.Delays()
		for ctx.Err() == nil {
			found, err := s.find(ctx, l.Token, known, has)
			if err == nil {
				again := false
				if !step(func() {
					// What was typed since the snapshot was taken belongs to it too.
					if again = found.foreign && s.since.Load() != 0 && s.marks.Load() != found.marked; !again {
						s.edit(found)
					}
				}) || !again {
					return
				}
				continue
			}
			stale := errors.Is(err, ErrStaleToken)
			step(func() {
				if stale {
					s.refused(err)
					return
				}
				s.failures++
				s.lastErr = err
				s.settle() // read-only for now; whoever waits for an answer has it
			})
			_ = wait.For(ctx, next())
		}
	})
}

// find does what load says. Where the newest generation is damaged, the newest good one
// takes its place. A store that can be read but not written, as a full disk, does not keep
// the page from editing. What the page had up to the mark has was taken when it lost the
// lock; it may show something else by now.
func (s *Saver) find(ctx context.Context, token int64, known *Generation, has int64) (loaded, error) {
	ctx, stop := context.WithTimeout(ctx, writeLimit)
	defer stop()
	var found loaded
	if err := s.config.Store.Fence(ctx, token); err != nil {
		found.unfenced = asError(err, CodeWriteFailed, "the store could not be opened")
		if errors.Is(err, ErrStaleToken) {
			return found, found.unfenced
		}
	}
	all, err := s.config.Store.List(ctx)
	switch {
	case err != nil && found.unfenced != nil:
		return found, found.unfenced
	case err != nil:
		return found, asError(err, CodeReadFailed, "what was saved could not be listed")
	}
	if found.unfenced == nil {
		all, err = s.rescue(ctx, token, all, &found)
	}
	if err != nil {
		return found, err
	}
	if len(all) == 0 || !all[0].Current { // the others are history, for a person to restore
		return found, nil
	}
	found.newest = &all[0]
	if found.foreign = known == nil || known.ID != all[0].ID; found.foreign {
		err = s.open(ctx, all, has, &found)
	}
	return found, err
}

// open reads the newest generation that is whole, and takes what the page is about to
// lose by loading it.
func (s *Saver) open(ctx context.Context, all []Generation, has int64, found *loaded) error {
	whole := false
	for _, g := range all {
		content, err := s.config.Store.Read(ctx, g.ID)
		if err == nil {
			found.content, whole = content, true
			break
		}
		if !errors.Is(err, ErrCorrupted) {
			return asError(err, CodeReadFailed, "what was saved could not be read")
		}
		if found.damage == nil {
			found.damage = err
		}
	}
	if !whole { // the page keeps what it shows
		found.foreign = false
		return nil
	}
	if found.marked = s.marks.Load(); s.since.Load() == 0 || found.marked == has {
		return nil
	}
	var err error
	found.unsaved, err = s.snapshot(ctx)
	found.taken = err == nil
	return err
}

// rescue saves what an editor left as it was closed, so that this page goes on with it. What
// others have saved over since is offered instead, and so is what cannot be saved now. It
// returns the generations there are afterwards.
func (s *Saver) rescue(ctx context.Context, token int64, all []Generation, found *loaded) ([]Generation, error) {
	if s.config.Rescued == nil {
		return all, nil
	}
	limited, stop := context.WithTimeout(ctx, answerLimit)
	defer stop()
	r, err := s.config.Rescued(limited)
	if r == nil || err != nil {
		return all, nil // nothing can be done about it now; it stays where it is
	}
	if len(all) > 0 {
		last, err := s.config.Store.Read(ctx, all[0].ID)
		if err == nil && bytes.Equal(last, r.Content) {
			r.Drop()
			return all, nil
		}
		if all[0].Token > r.Token {
			found.unsaved, found.rescued = r.Content, r
			return all, nil
		}
	}
	g, err := s.config.Store.Commit(ctx, Commit{Content: Bytes(r.Content), Token: token, SavedAt: s.config.Clock.Now().Wall, Limits: s.config.Limits})
	switch {
	case errors.Is(err, ErrStaleToken):
		return all, err
	case err != nil:
		found.unsaved = r.Content
		return all, nil
	}
	r.Drop()
	return append([]Generation{g}, superseded(all)...), nil
}
