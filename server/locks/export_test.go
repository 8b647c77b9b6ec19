package locks

// Waiting is how many requests this server has seen in line.
func (t *Table) Waiting() int {
	t.mirror.mu.Lock()
	defer t.mirror.mu.Unlock()
	return len(t.mirror.tickets)
}
