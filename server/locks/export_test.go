package locks

import "testing"

const Backstop = backstop

// Waiting is how many requests this server has seen in line.
func (t *Table) Waiting() int {
	t.mirror.mu.Lock()
	defer t.mirror.mu.Unlock()
	return len(t.mirror.tickets)
}

// Looks is how often the waiters at this server have looked whether they may go ahead.
func (t *Table) Looks() int {
	t.mirror.mu.Lock()
	defer t.mirror.mu.Unlock()
	return t.mirror.looks
}

// SetFew changes for one test how many leases a listing collects at once.
func SetFew(t *testing.T, n int) {
	former := few
	few = n
	t.Cleanup(func() { few = former })
}
