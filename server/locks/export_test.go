package locks

import "testing"

const Backstop = backstop

// Waiting returns the number of requests in the queue in this server's view.
func (t *Table) Waiting() int {
	t.mirror.mu.Lock()
	defer t.mirror.mu.Unlock()
	return len(t.mirror.tickets)
}

// Looks returns how often the waiters at this server have looked whether they may go ahead.
func (t *Table) Looks() int {
	t.mirror.mu.Lock()
	defer t.mirror.mu.Unlock()
	return t.mirror.looks
}

// SetFew changes the number of leases that a listing collects at once, for one test.
func SetFew(t *testing.T, n int) {
	former := few
	few = n
	t.Cleanup(func() { few = former })
}
