package autosave

import "slices"

// saves knows the write in progress, and the callers that wait for a save or a restore. The goroutine that owns the state of the Saver
// uses it alone.
type saves struct {
	writing  *write
	ended    *endedWrite // its outcome is not handled yet
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

func (s *saves) progress(w *write, p Phase) {
	if s.writing == w {
		w.phase = p
	}
}

// resolve answers the callers that waited for this write.
func (s *saves) resolve(w *write, o outcome) {
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

// refuse answers all callers that wait for a save or restore.
func (s *saves) refuse(err error) {
	for _, waits := range s.waiters {
		waits.result <- outcome{err: err}
	}
	s.unrestored(err)
	s.waiters, s.urgent = nil, false
}

// settleRestore answers a restore, unless it has an answer.
func (s *saves) settleRestore(r *restore, err error) {
	if i := slices.Index(s.restores, r); i >= 0 {
		s.restores = append(s.restores[:i:i], s.restores[i+1:]...)
		r.result <- err
	}
}

// unrestored answers the restores that cannot go on after a failed write.
func (s *saves) unrestored(err error) {
	for len(s.restores) > 0 {
		s.settleRestore(s.restores[0], err)
	}
}

// bound counts the writes of a restore, and ends one that takes too many.
func (s *saves) bound() {
	if len(s.restores) == 0 {
		return
	}
	r := s.restores[0]
	if r.writes++; r.writes > restoreWrites {
		s.settleRestore(r, &Error{Code: CodeWriteFailed, Detail: "the text changes all the time; stop typing and restore again"})
	}
}
