package rooms

import (
	"container/heap"
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// lastUpdate is the time of a room's last change.
type lastUpdate struct {
	room     string
	at       time.Time
	revision int64
	index    int // in the queue
}

// entry returns the key that stores the time, with the revision that was read.
func (u *lastUpdate) entry() kv.Entry {
	return kv.Entry{Key: updatePrefix + u.room, Modified: u.revision}
}

// idleQueue orders the rooms by their last changes, for container/heap.
type idleQueue []*lastUpdate

var _ heap.Interface = (*idleQueue)(nil)

func (q idleQueue) Len() int           { return len(q) }
func (q idleQueue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }

func (q idleQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push appends a *lastUpdate.
func (q *idleQueue) Push(x any) {
	u := x.(*lastUpdate)
	u.index = len(*q)
	*q = append(*q, u)
}

// Pop removes the last element.
func (q *idleQueue) Pop() any {
	last := (*q)[len(*q)-1]
	(*q)[len(*q)-1] = nil
	*q = (*q)[:len(*q)-1]
	return last
}

// idleSince returns the rooms that have not changed since limit.
func (p *presence) idleSince(limit time.Time) (due []lastUpdate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for todo := []int{0}; len(todo) > 0; todo = todo[1:] {
		i := todo[0]
		if i >= len(p.idle) {
			continue
		}
		p.looked++
		if u := p.idle[i]; !u.at.After(limit) {
			due = append(due, *u)
			todo = append(todo, 2*i+1, 2*i+2) // everything below it in the heap changed later
		}
	}
	return due
}
