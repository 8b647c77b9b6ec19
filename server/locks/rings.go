package locks

// bell notifies its owner that something has happened. Several notifications may become one.
type bell chan struct{}

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// rings holds the bells of the requests that wait at this server, by event. The mirror's mutex guards it.
type rings struct {
	events map[string]map[bell]struct{}
	after  map[bell]int64 // notified when this server's view reaches a revision
}

func newRings() rings { return rings{map[string]map[bell]struct{}{}, map[bell]int64{}} }

// claimEvent is the end of a lease; ticketEvent is any change of a ticket.
func claimEvent(lease string) string  { return "h/" + lease }
func ticketEvent(lease string) string { return "t/" + lease }

// waiting is a bell with its events.
type waiting struct {
	bell
	events []string
}

// await adds an event for the bell.
func (r rings) await(w *waiting, event string) {
	if r.events[event] == nil {
		r.events[event] = map[bell]struct{}{}
	}
	r.events[event][w.bell] = struct{}{}
	w.events = append(w.events, event)
}

// awaitRevision notifies the bell when this server's view reaches a revision.
func (r rings) awaitRevision(w *waiting, revision int64) { r.after[w.bell] = revision }

// forget removes all events of the bell.
func (r rings) forget(w *waiting) {
	for _, event := range w.events {
		delete(r.events[event], w.bell)
		if len(r.events[event]) == 0 {
			delete(r.events, event)
		}
	}
	delete(r.after, w.bell)
	w.events = w.events[:0]
}

func (r rings) ring(event string) {
	for b := range r.events[event] {
		b.ring()
	}
}

func (r rings) reached(revision int64) {
	for b, after := range r.after {
		if after <= revision {
			b.ring()
			delete(r.after, b)
		}
	}
}

func (r rings) ringAll() {
	for _, bells := range r.events {
		for b := range bells {
			b.ring()
		}
	}
	for b := range r.after {
		b.ring()
	}
}
