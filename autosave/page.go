package autosave

import (
	"errors"
	"time"
)

// page changes the role of this page: it acquires the lock, loads the content, edits, and loses or releases the lock. The loop calls its
// methods. Those that take a context wait, and run on other goroutines.
type page struct{ peers }

// advance begins everything that is due, sets the timer to the next deadline, and emits the phase.
func (p *page) advance() {
	if p.role == ended {
		return
	}
	if o := p.saves.takeEnded(); o != nil {
		p.writeEnded(o.write, o.outcome)
	}
	if p.drafts.awaitsLateMark && p.changes.dirty() {
		p.drafts.awaitsLateMark = false
		p.reconsider()
	}
	if p.saves.writing == nil && p.writes() {
		if at, ok := p.due(); ok {
			if pause := time.Until(at); pause > 0 {
				p.timer.Reset(pause)
			} else {
				p.writeNext()
			}
		}
	}
	p.emitPhase(p.phase())
}

// writeEnded handles the outcome of a write. The writer records it; if it ends the role of this page, the role changes here.
func (p *page) writeEnded(w *write, o outcome) {
	if w.fences() {
		switch err := p.fenced(w, o); {
		case errors.Is(err, ErrStaleToken):
			p.refused(err)
		case err != nil:
			p.load(p.lease)
		}
		return
	}
	given, err := p.written(w, o)
	switch {
	case errors.Is(err, ErrStaleToken):
		p.refused(err)
	case err != nil:
		p.stepBack(err, 0)
	case given != nil:
		p.loadAnew(given.content)
	}
	p.saves.answerWaiters(w, o)
}
