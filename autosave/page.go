package autosave

import (
	"errors"
	"time"
)

// page is the life of this page: it wants the lock, edits, loses or gives up the lock, and wants it again. The goroutine of the loop calls
// its methods, except for those that take a context.
type page struct{ peers }

// advance begins everything that is due, sets the timer to the next deadline, and emits the phase.
func (p *page) advance() {
	if p.role == ended {
		return
	}
	if o := p.saves.takeEnded(); o != nil {
		p.writeEnded(o.write, o.outcome)
	}
	if p.drafts.settled && p.changes.dirty() {
		p.drafts.settled = false
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

// writeEnded handles the outcome of a write.
func (p *page) writeEnded(w *write, o outcome) {
	if w.fences() {
		switch err := p.shut(w, o); {
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
		p.give(given.content)
	}
	p.saves.resolve(w, o)
}
