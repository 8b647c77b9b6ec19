package autosave

import "context"

// flush saves now, if the page has this role.
func (wr *writer) flush(ctx context.Context, as role) (Generation, error) {
	return wr.generation(ctx, func(result chan outcome) { wr.queue(as, result) })
}

// flushLast saves unsaved changes, if this page may. The page may return an older text, which flushNow() has pinned, and the user may type
// while the page returns its text. Then flushLast saves again.
func (wr *writer) flushLast(ctx context.Context) (err error) {
	ctx, stop := before(ctx, handoverLimit, draftLimit+releaseLimit)
	defer stop()
	for range reloads {
		clean := false
		wr.do(func() { clean = wr.role != leaving || !wr.changes.dirty() && wr.saves.writing == nil })
		if clean || err != nil {
			break
		}
		_, err = wr.flush(ctx, leaving)
	}
	return err
}

// generation requests a generation and returns it. The answer may arrive after ctx has ended.
func (wr *writer) generation(ctx context.Context, ask func(result chan outcome)) (Generation, error) {
	result := make(chan outcome, 1)
	if !wr.do(func() { ask(result) }) {
		return Generation{}, wr.whyEnded()
	}
	select {
	case o := <-result:
		return o.generation, o.err
	case <-ctx.Done():
		return Generation{}, late(ctx, CodeWriteFailed, theSave)
	}
}

// queue makes result wait for the write that contains the present text, or answers it at once if no write is necessary or possible.
func (wr *writer) queue(as role, result chan outcome) {
	dirty := wr.changes.dirty()
	switch {
	case wr.role != as:
		result <- outcome{err: wr.refusal()}
	case !dirty && !wr.saves.saving() && wr.newest != nil:
		result <- outcome{generation: *wr.newest}
	case !dirty && wr.saves.saving() && (wr.saves.writing.restore == nil || wr.loadable(wr.saves.writing.restore)): // else the page's text is saved again
		wr.saves.waiters = append(wr.saves.waiters, waiter{wr.saves.epoch, result})
	default:
		wr.saves.urgent = true
		wr.saves.waiters = append(wr.saves.waiters, waiter{wr.saves.epoch + 1, result})
	}
}
