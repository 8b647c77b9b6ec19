package locks

// notifier wakes its owner when something has happened. Several notifications may become one.
type notifier chan struct{}

func (b notifier) notify() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// notifiers holds the notifiers of the requests that wait at this server, by event. The mirror's mutex guards it.
type notifiers struct {
	events map[string]map[notifier]struct{}
	after  map[notifier]int64 // notified when this server's view reaches a revision
}

func newNotifiers() notifiers {
	return notifiers{map[string]map[notifier]struct{}{}, map[notifier]int64{}}
}

// claimEvent is the end of a lease; ticketEvent is any change of a ticket.
func claimEvent(lease string) string  { return "h/" + lease }
func ticketEvent(lease string) string { return "t/" + lease }

// waiting is a notifier and the events that it waits for.
type waiting struct {
	notifier
	events []string
}

// await adds an event for the notifier.
func (r notifiers) await(w *waiting, event string) {
	if r.events[event] == nil {
		r.events[event] = map[notifier]struct{}{}
	}
	r.events[event][w.notifier] = struct{}{}
	w.events = append(w.events, event)
}

// awaitRevision notifies the notifier when this server's view reaches a revision.
func (r notifiers) awaitRevision(w *waiting, revision int64) { r.after[w.notifier] = revision }

// forget removes all events of the notifier.
func (r notifiers) forget(w *waiting) {
	for _, event := range w.events {
		delete(r.events[event], w.notifier)
		if len(r.events[event]) == 0 {
			delete(r.events, event)
		}
	}
	delete(r.after, w.notifier)
	w.events = w.events[:0]
}

func (r notifiers) notify(event string) {
	for b := range r.events[event] {
		b.notify()
	}
}

func (r notifiers) reached(revision int64) {
	for b, after := range r.after {
		if after <= revision {
			b.notify()
			delete(r.after, b)
		}
	}
}

// happened notifies the notifiers of all events.
func (r notifiers) happened() {
	for _, all := range r.events {
		for b := range all {
			b.notify()
		}
	}
}
