package autosave

import "time"

// edit gives the page the content to load and then lets it edit. It waits until the listener has returned, so that
// nothing is typed into a text that is about to be replaced, and no such text is saved. It does not wait for a listener
// that hangs.
func (p *page) edit(found loaded) {
	e := Event{Type: EventEditable, LeaseID: p.lease.ID, Drafts: found.waiting}
	if found.newest == nil && (p.newest != nil || p.changes.count() > 0) { // the storage was emptied, or a draft was discarded: only this page has the text
		p.changes.keep(p.changes.now())
	}
	if found.newest != nil {
		e.Base = found.newest.ID
	}
	p.newest, p.knowsReadonly = found.newest, false
	if found.foreign { // otherwise the page still shows its text, and saves it now
		p.drafts.replaced()
		p.changes.forget()
		e.Content, e.Loaded, e.Unsaved = found.content, found.content != nil, p.drafts.unsaved.text
		p.saves.size = int64(len(found.content))
	}
	p.retries.recovered()
	fresh := p.drafts.setWaiting(found.waiting)
	p.emitPhase(p.phase())
	e.State = p.state()
	term := p.term
	open := func() {
		p.do(func() {
			if p.term == term && p.departing == 0 {
				p.opened(found)
			}
		})
	}
	time.AfterFunc(answerLimit, open)
	p.events.tellThen(e, open)
	p.tellDrafts(fresh, found.sides)
}

// opened is called when the page has loaded its content.
func (p *page) opened(found loaded) {
	lease := p.lease
	p.held.Store(&lease)
	p.retries.lastErr, p.holder = found.trouble, nil
	if p.unfenced = found.unfenced != nil; p.unfenced {
		p.retries.failed(found.unfenced)
	}
	p.enter(editing)
	p.emitPhase(p.phase())
	p.announceVerdict()
	p.tookOver()
}

// loadAnew makes the page load the content, which is the current generation. The page may not write before it has loaded
// it.
func (p *page) loadAnew(text []byte) {
	p.enter(loading)
	p.edit(loaded{newest: p.newest, content: text, foreign: true, waiting: p.drafts.waiting})
}
