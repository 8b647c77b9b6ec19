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
func (wr *writer) makeCurrent(ctx context.Context, r *restore) error {
	r.result = make(chan error, 1)
	if !wr.do(func() {
		switch {
		case wr.role != editing:
			r.result <- wr.refusal()
		case wr.held.Load() != r.lease:
			r.result <- errDecideAgain
		default:
			wr.saves.restores = append(wr.saves.restores, r)
		}
	}) {
		return wr.over()
	}
	select {
	case err := <-r.result:
		return err
	case <-ctx.Done():
		wr.do(func() { wr.saves.settleRestore(r, late(ctx, CodeWriteFailed, theSave)) })
		return <-r.result // it may have ended just before
	}
}

// restorable reports whether the next write belongs to a restore: everything else is saved.
func (wr *writer) restorable() bool {
	return len(wr.saves.restores) > 0 && wr.role == editing && !wr.changes.dirty() && wr.newest != nil
}

// restoreNext commits the content of the oldest restore.
func (wr *writer) restoreNext() {
	r := wr.saves.restores[0]
	wr.commit(&write{since: wr.changes.now(), restores: r}, r.take)
}

func (r *restore) take(context.Context) (Content, error) {
	if d := r.draft; d != nil {
		return Numbered{Bytes(r.content), d.ID, d.Number}, nil
	}
	return Bytes(r.content), nil
}

// loadable reports whether the page loads the restored content once it is current. This is so if the caller still waits, and, for a
// draft, if the page edits.
func (wr *writer) loadable(r *restore) bool {
	return slices.Contains(wr.saves.restores, r) && (r.draft == nil || wr.role == editing)
}

// restored ends a restore whose content was committed, if the page may load it. Otherwise the page's text is saved
// again. It reports whether the page must be given the content, which the caller of the restore does not get.
func (wr *writer) restored(w *write) (give bool) {
	r := w.restores
	switch {
	case !wr.loadable(r):
		wr.changes.keep(w.since)
		wr.saves.settleRestore(r, wr.refusal())
	case !wr.changes.dirty():
		wr.saves.settleRestore(r, nil)
		wr.drafts.replaced()
		if give = r.draft != nil; give {
			wr.saves.unrestored(errDecideAgain)
		}
	case wr.role != editing:
		wr.saves.settleRestore(r, wr.refusal())
	}
	return give
}
