package autosave

import "slices"

// saves knows the write in progress, and the callers that wait for a save or a restore. Only the loop uses it.
type saves struct {
	writing  *write
	ended    *endedWrite // a write whose outcome is not handled yet
	epoch    int64       // snapshots begun
	waiters  []waiter
	restores []*restore // the oldest first
	urgent   bool       // the next save does not wait for a pause in typing
	size     int64      // of the last snapshot
}

// waiter waits for the snapshot of an epoch, or a later one, to be durable.
type waiter struct {
	epoch  int64
	result chan outcome
}

type outcome struct {
	generation Generation
	err        error
}

// endedWrite is a write and its outcome.
type endedWrite struct {
	*write
	outcome
}

// end records the outcome of the write in progress. An outcome that comes later, such as that of a write under a former lease, is ignored.
func (s *saves) end(w *write, o outcome) {
	if s.writing == w {
		s.writing, s.ended = nil, &endedWrite{w, o}
	}
}

// takeEnded returns the write that has ended, once.
func (s *saves) takeEnded() *endedWrite {
	e := s.ended
	s.ended = nil
	return e
}

// saving reports whether a commit is in progress.
func (s *saves) saving() bool { return s.writing != nil && s.writing.since != 0 }

// progress records the phase of a write, if it is the write in progress.
func (s *saves) progress(w *write, p Phase) {
	if s.writing == w {
		w.phase = p
	}
}

// answerWaiters answers the callers that waited for this write.
func (s *saves) answerWaiters(w *write, o outcome) {
	var rest []waiter
	for _, waits := range s.waiters {
		if waits.epoch <= w.epoch {
			waits.result <- o
		} else {
			rest = append(rest, waits)
		}
	}
	s.waiters = rest
}

// postpone makes the callers that waited for this write wait for the next one.
func (s *saves) postpone(w *write) {
	for i := range s.waiters {
		if waits := &s.waiters[i]; waits.epoch <= w.epoch {
			waits.epoch, s.urgent = w.epoch+1, true
		}
	}
}

// refuseAll answers all callers that wait for a save or restore.
func (s *saves) refuseAll(err error) {
	for _, waits := range s.waiters {
		waits.result <- outcome{err: err}
	}
	s.refuseRestores(err)
	s.waiters, s.urgent = nil, false
}

// answerRestore answers a restore, unless it has an answer.
func (s *saves) answerRestore(r *restore, err error) {
	if i := slices.Index(s.restores, r); i >= 0 {
		s.restores = append(s.restores[:i:i], s.restores[i+1:]...)
		r.result <- err
	}
}

// refuseRestores answers all restores with an error.
func (s *saves) refuseRestores(err error) {
	for len(s.restores) > 0 {
		s.answerRestore(s.restores[0], err)
	}
}

// limitRestore counts the writes of a restore, and ends one that takes too many.
func (s *saves) limitRestore() {
	if len(s.restores) == 0 {
		return
	}
	r := s.restores[0]
	if r.writes++; r.writes > restoreWrites {
		s.answerRestore(r, &Error{Code: CodeWriteFailed, Detail: "the text changes all the time; stop typing and restore again"})
	}
}
