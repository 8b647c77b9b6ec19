package autosave

import (
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// promise is the state of an editor that was asked and has not refused.
type promise struct {
	granted bool      // the editor has offered the lock
	until   time.Time // the offer is valid until then, or, without an offer, the editor has time to answer until then
	names   string    // a slash and the document whose lock it offers; "" if the offer was overtaken: another page edits that document, or one below it
}

// covers reports whether the offer is for this document, or for one around it.
func (p promise) covers(document string) bool {
	return p.names != "" && strings.HasPrefix("/"+document+"/", p.names+"/")
}

// promises knows the answers of the editors that this page has asked. Only the asker uses it.
type promises struct {
	grace   time.Duration      // how long this page waits for an answer
	byLease map[string]promise // by the id of the editor's lease; "" for editors that are not known yet
}

// recordOffer records an offer.
func (ps *promises) recordOffer(m Message, until time.Time) {
	ps.byLease[m.Detail] = promise{true, until, "/" + m.Document}
}

// editorChanged records that a document has a new editor, or has none any more. An earlier offer of this document, or of one around it, no
// longer covers anything.
func (ps *promises) editorChanged(m Message) {
	for lease, p := range ps.byLease {
		if lease != m.Holder.LeaseID && p.covers(m.Document) {
			p.names = ""
			ps.byLease[lease] = p
		}
	}
}

// leaseOf returns the id of an editor's lease, or "" if it is not known. If the holder does not name it, the lease is the one whose valid
// offer covers the document that the holder keeps others from editing.
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

// allow gives an editor time to answer, unless it has offered the lock.
func (ps *promises) allow(lease string, limit time.Duration) {
	until := time.Now().Add(limit)
	if p := ps.byLease[lease]; !p.granted && until.After(p.until) {
		ps.byLease[lease] = promise{until: until}
	}
}

// evaluate returns how much time the editors still have, and whether all of them have offered the lock. again reports that some editors were
// not asked, or that their offers have expired, so this page asks again. An editor whose lease is not known was asked, because a new editor
// announces itself. It may be any editor that has answered, or it is frozen and has had its time since the first question.
func (ps *promises) evaluate(editors []lock.Holder) (pause time.Duration, offered, again bool) {
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
