package autosave

import (
	"context"
	"slices"

	"github.com/holdfast-dev/holdfast/lock"
)

// restoreWrites is the maximum number of writes of a restore that is repeated because the user types meanwhile.
const restoreWrites = 10

// restore is a generation that becomes the current one again: a write whose content is known. The text of the page is
// saved first. Text typed during the write is saved too, and then the write is repeated. The history therefore contains
// every keystroke, and the page and the store agree in the end.
type restore struct {
	content []byte
	draft   *Draft      // the draft whose content it is, which an event gives to the page; nil: a generation's
	lease   *lock.Lease // under which the user has decided: another pointer for each content that an event gave to the page
	writes  int
	result  chan error // capacity 1
}

// Restore makes a generation the current one again and returns its content for the page to load. It saves the text that the page
// shows until then. It fails with the errors of FlushNow and of [Store], and with ErrReadOnly if this page was read-only
// meanwhile. After an error, or if ctx has ended, the page's own text is saved as the current content.
func (s *Saver) Restore(ctx context.Context, id string) ([]byte, error) {
	lease := s.held.Load()
	ctx, stop := bounded(ctx)
	defer stop()
	content, err := s.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := s.makeCurrent(ctx, &restore{content: content, lease: lease}); err != nil {
		return nil, err
	}
	return content, nil
}

var errDecideAgain = &Error{Code: CodeReadOnly, Detail: "this page was read-only meanwhile, and another content may be current; look at it, and decide again"}

// makeCurrent runs a restore and returns when the content is current. A decision holds for the content that the user
// knows: it ends with the lease of the page, and when an event gives it another one.
func (s *Saver) makeCurrent(ctx context.Context, r *restore) error {
	r.result = make(chan error, 1)
	if !s.do(func() {
		switch {
		case s.role != editing:
			r.result <- s.refusal()
		case s.held.Load() != r.lease:
			r.result <- errDecideAgain
		default:
			s.saves.restores = append(s.saves.restores, r)
		}
	}) {
		return s.over()
	}
	select {
	case err := <-r.result:
		return err
	case <-ctx.Done():
		s.do(func() { s.saves.settleRestore(r, late(ctx, CodeWriteFailed, theSave)) })
		return <-r.result // it may have ended just before
	}
}

// restorable reports whether the next write belongs to a restore: everything else is saved.
func (s *Saver) restorable() bool {
	return len(s.saves.restores) > 0 && s.role == editing && !s.changes.dirty() && s.newest != nil
}

// restoreNext commits the content of the oldest restore.
func (s *Saver) restoreNext() {
	r := s.saves.restores[0]
	s.commit(&write{since: s.changes.now(), restores: r}, r.take)
}

func (r *restore) take(context.Context) (Content, error) {
	if d := r.draft; d != nil {
		return Numbered{Bytes(r.content), d.ID, d.Number}, nil
	}
	return Bytes(r.content), nil
}

// loadable reports whether the page loads the restored content once it is current. This is so if the caller still waits, and, for a
// draft, if the page edits.
func (s *Saver) loadable(r *restore) bool {
	return slices.Contains(s.saves.restores, r) && (r.draft == nil || s.role == editing)
}

// restored ends a restore whose content was committed, if the page may load it. Otherwise the page's text is saved
// again.
func (s *Saver) restored(w *write) {
	r := w.restores
	switch {
	case !s.loadable(r):
		s.changes.keep(w.since)
		s.saves.settleRestore(r, s.refusal())
	case !s.changes.dirty():
		s.saves.settleRestore(r, nil)
		s.drafts.replaced()
		if r.draft != nil {
			s.saves.unrestored(errDecideAgain)
			s.give(r.content)
		}
	case s.role != editing:
		s.saves.settleRestore(r, s.refusal())
	}
}
