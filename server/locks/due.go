package locks

import "container/heap"

// dueQueue orders the leases by deadline, for container/heap.
type dueQueue []*held

var _ heap.Interface = (*dueQueue)(nil)

func (q dueQueue) Len() int           { return len(q) }
func (q dueQueue) Less(i, j int) bool { return q[i].deadline.Before(q[j].deadline) }

func (q dueQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push appends a *held.
func (q *dueQueue) Push(x any) {
	h := x.(*held)
	h.index = len(*q)
	*q = append(*q, h)
}

// Pop removes the last element.
func (q *dueQueue) Pop() any {
	last := (*q)[len(*q)-1]
	(*q)[len(*q)-1] = nil
	*q = (*q)[:len(*q)-1]
	last.index = -1
	return last
}

// observedBefore keeps the times at which this server has seen the heartbeats that it reads again. Heartbeats after its view at a revision came
// while its watch did not run, so they count as seen now. The stored times are those of other clocks, and could end a lease too early.
func (l *loading) observedBefore(beats map[string]beat, view int64) {
	for key, b := range l.beats {
		switch known := beats[key]; {
		case known.revision == b.revision:
			b = known
		case view > 0 && b.revision > view:
			b.live = true
		default:
			continue // at the start there is only the stored time
		}
		l.beats[key] = b
		if h := l.homes[claimOf(key)]; h != nil {
			l.renewed(h, b)
		}
	}
}

// beatOf returns the revision of a lease's last heartbeat, as far as this server knows. The first one comes with the grant.
func (m *mirror) beatOf(s storedLease) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.held[s.Lease]; h != nil && h.token == s.token {
		return max(h.beatAt, s.token)
	}
	return s.token
}
