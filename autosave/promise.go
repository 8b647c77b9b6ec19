package autosave

import (
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// promise is the answer of an editor that has not refused.
type promise struct {
	granted bool
	until   time.Time // until then its offer is valid, or it has time to answer
	names   string    // the document that it offers, after a slash; "" if another page edits that document, or one below it, by now
}

// covers reports whether a document is the offered one, or below that.
func (p promise) covers(document string) bool {
	return p.names != "" && strings.HasPrefix("/"+document+"/", p.names+"/")
}

// promises knows the answers of the editors that this page has asked. The goroutine of RequestEdit uses it alone.
type promises struct {
	grace   time.Duration      // how long this page waits for an answer
	byLease map[string]promise // by the id of the editor's lease; "" for editors that are not known yet
}

// offers records an offer.
func (ps *promises) offers(m Message, until time.Time) {
	ps.byLease[m.Detail] = promise{true, until, "/" + m.Document}
}

// moved records that a document has another editor than the one that has offered it or one around it, or none.
func (ps *promises) moved(m Message) {
	for lease, p := range ps.byLease {
		if lease != m.Holder.LeaseID && p.covers(m.Document) {
			p.names = ""
			ps.byLease[lease] = p
		}
	}
}

// leaseOf returns the lease of an editor. An editor without a name has the one that is offered for the document that it keeps, or for one around
// that.
func (ps *promises) leaseOf(h lock.Holder) string {
	if h.LeaseID == "" {
		for lease, p := range ps.byLease {
			if p.covers(h.Excludes) && time.Until(p.until) > 0 {
				return lease
			}
		}
	}
	return h.LeaseID
}

// give gives an editor time to answer, unless it has offered the lock.
func (ps *promises) give(lease string, limit time.Duration) {
	until := time.Now().Add(limit)
	if p := ps.byLease[lease]; !p.granted && until.After(p.until) {
		ps.byLease[lease] = promise{until: until}
	}
}

// weigh returns how much time the editors still have, whether all of them have offered the lock, and whether to ask again: for editors
// that were not asked, or whose offer has expired. An editor whose lease is unknown was asked: a new editor announces itself. It may be any
// of those that have answered, or it is frozen and has had its time since the first question.
func (ps *promises) weigh(editors []lock.Holder) (pause time.Duration, offered, again bool) {
	offered = len(editors) > 0
	var leases []string
	for _, h := range editors {
		own := ps.leaseOf(h)
		leases = append(leases, own)
		if own == "" {
			for lease := range ps.byLease {
				leases = append(leases, lease)
			}
		}
	}
	for _, lease := range leases {
		p, asked := ps.byLease[lease]
		left := time.Until(p.until)
		if p.granted && left > 0 {
			continue
		}
		if offered = false; p.granted || !asked {
			left, again = ps.grace, true
			ps.byLease[lease] = promise{until: time.Now().Add(left)}
		}
		pause = max(pause, left)
	}
	if len(leases) > len(editors) { // the next look may show more
		pause = min(pause, lateInspectLimit)
	}
	return pause, offered, again
}
