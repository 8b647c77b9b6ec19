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

// observedBefore keeps the times at which this server has seen the heartbeats that it reads again. Their stored times are those of
// other clocks, and could end a lease too early.
func (l *loading) observedBefore(beats map[string]beat) {
	for key, known := range beats {
		if l.beats[key].revision != known.revision {
			continue
		}
		l.beats[key] = known
		if h := l.homes[claimOf(key)]; h != nil {
			l.renewed(h, known)
		}
	}
}
