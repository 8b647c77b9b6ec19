package autosave

import (
	"context"
	"slices"

	"github.com/holdfast-dev/holdfast/lock"
)

// restoreWrites is the maximum number of writes of a restore that is repeated because the user types meanwhile.
const restoreWrites = 10

// restore is a generation that becomes the current one again: a write whose content is known. The text of the page is
// saved first. Text typed during the write is saved too, and then the write is repeated. So no text is lost, and in the end the page shows the
// content that the store has.
type restore struct {
	content []byte
	draft   *Draft      // the draft whose text it is; an event gives it to the page. nil: a generation, and the caller gives it to the page
	lease   *lock.Lease // tenure.held when the user decided; the pointer changes each time the page gets another content
	writes  int         // for this restore, so far
	result  chan error  // capacity 1
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

// makeCurrent runs a restore and returns when the content is current. A decision is valid for the content that the user sees: it is void once
// the page has lost its lease, or an event has given it another content.
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
		return wr.whyEnded()
	}
	select {
	case err := <-r.result:
		return err
	case <-ctx.Done():
		wr.do(func() { wr.saves.answerRestore(r, late(ctx, CodeWriteFailed, theSave)) })
		return <-r.result // it may have ended just before
	}
}

// restorable reports whether the next write is that of a restore. It is not before everything else is saved.
func (wr *writer) restorable() bool {
	return len(wr.saves.restores) > 0 && wr.role == editing && !wr.changes.dirty() && wr.newest != nil
}

// restoreNext commits the content of the oldest restore.
func (wr *writer) restoreNext() {
	r := wr.saves.restores[0]
	wr.commit(&write{since: wr.changes.now(), restore: r}, r.take)
}

// take returns the content of the write.
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

// restored ends a restore whose content was committed, if the page may load it. Otherwise the page keeps its text, which is saved again: callers
// of FlushNow wait for that. It reports whether the page must be given the content, which the caller of the restore does not get.
func (wr *writer) restored(w *write) (give bool) {
	r, loadable := w.restore, wr.loadable(w.restore)
	if loadable && !wr.changes.dirty() {
		wr.saves.answerRestore(r, nil)
		wr.drafts.replaced()
		if give = r.draft != nil; give {
			wr.saves.refuseRestores(errDecideAgain)
		}
		return give
	}
	wr.saves.postpone(w)
	if !loadable {
		wr.changes.keep(w.since)
	}
	if !loadable || wr.role != editing {
		wr.saves.answerRestore(r, wr.refusal())
	}
	return false
}
