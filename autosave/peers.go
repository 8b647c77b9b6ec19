package autosave

import "github.com/holdfast-dev/holdfast/lock"

// peers knows the other pages, and exchanges messages with them. The loop calls its methods. Any goroutine may call receive, reach and post.
type peers struct {
	writer
	mail    messageQueue
	unnamed chan struct{} // closed when the new editor announces itself; nil once the page knows
	handing *handing      // another page asks this one for the lock
	asking  *ask          // this page asks for the lock
}

// renewOffer offers the lock once more, for the same time, to the page that asks again. If the offer has just ended, this page answers that
// request after the handover.
func (p *peers) renewOffer(m Message) {
	h := p.handing
	h.question = m.Question
	switch {
	case h.offer == nil:
	case h.offer.Stop():
		h.offer.Reset(handoverLimit)
		p.grant(h)
	default:
		h.next = &m
	}
}

// grant offers the lock.
func (p *peers) grant(h *handing) {
	p.post(Message{Kind: EditGranted, Round: h.round, Question: h.question, Detail: p.lease.ID})
}

// receive queues a message and returns at once. It ignores messages about documents that are neither around nor below this one.
func (p *peers) receive(m Message) {
	if related(m.Document, p.reach()) {
		p.mail.put(m)
		p.wakeLoop()
	}
}

// reach returns the name of the document, or, while this page edits, the name of the document that its lease keeps others from editing.
func (p *peers) reach() string {
	if lease := p.held.Load(); lease != nil {
		return lease.Excludes()
	}
	return p.config.document()
}

// post sends a message to the other pages, with the sender and its document. A page that receives nothing sends no answer, and the wait for an
// answer is bounded, so post ignores errors.
func (p *peers) post(m Message) {
	if p.config.Channel != nil {
		m.From, m.Document = p.config.Locks.OwnerID(), p.reach()
		_ = p.config.Channel.Post(m)
	}
}

// named records the page that edits, and emits an event if that is new.
func (p *peers) named(h lock.Holder) {
	known := p.holder != nil && p.holder.OwnerID == h.OwnerID && p.holder.LeaseID == h.LeaseID
	p.holder = &h
	switch {
	case p.unnamed != nil: // autosave:readonly waits for it
		close(p.unnamed)
		p.unnamed = nil
	case !known:
		p.events.tell(Event{Type: EventPhase, State: p.state()})
	}
}

// rival records that another page asks at the same time, and informs that page about this one. If this page asks an editor on another machine,
// it turns the other page away. Only the page that holds the lock of this browser can ask there, and force must not take this lock from it.
func (p *peers) rival(m Message) {
	switch a := p.asking; {
	case a == nil:
	case a.rivals != nil:
		if _, known := a.rivals[m.Round]; !known {
			a.rivals[m.Round] = m
			p.post(Message{Kind: EditRival, Round: a.round, Force: a.force})
		}
	case p.role == viewing: // otherwise it may be its turn
		p.post(Message{Kind: EditBusy, Round: m.Round})
	}
}

// turnAway answers the rivals of this page that it has asked before them. Rivals that come later, while this page waits, get the same answer.
func (p *peers) turnAway() {
	if p.asking != nil {
		for round := range p.asking.rivals {
			p.post(Message{Kind: EditBusy, Round: round})
		}
		p.asking.rivals = nil
	}
}

// withdraw ends this page's request for the lock, because the page is suspended.
func (p *peers) withdraw() {
	if p.asking != nil {
		p.post(Message{Kind: EditCancelled, Round: p.asking.round})
		close(p.asking.withdrawn)
		p.asking = nil
	}
}

// tookOver announces that this page edits now. First it answers its rivals, which would ask this page once they receive Edits.
func (p *peers) tookOver() {
	l := p.lease
	p.turnAway()
	p.post(Message{Kind: Edits, Holder: lock.Holder{Resource: l.Resource, Mode: l.Mode, Strategy: l.Strategy, OwnerID: l.OwnerID,
		OwnerName: l.OwnerName, LeaseID: l.ID, Token: l.Token, Since: l.AcquiredAt, ExpiresAt: l.ExpiresAt}})
}

// endHandover ends a handover because this page leaves for another reason, and returns its round.
func (p *peers) endHandover() (round string) {
	if p.handing != nil {
		round = p.handing.round
		p.handing.stop()
		p.handing = nil
	}
	return round
}
