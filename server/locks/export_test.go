package locks

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv/memory"
)

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

// OpenInMemory opens a table over a client of a store in memory, and closes all three when the test ends.
func OpenInMemory(t *testing.T, m *memory.Store, client interface {
	Store
	Close() error
}) *Table {
	t.Helper()
	table, err := Open(t.Context(), client, Config{})
	require.NoError(t, err)
	t.Cleanup(func() { table.Close(); assert.NoError(t, client.Close()); m.Close() })
	return table
}

// SetFew changes the number of leases that a listing collects at once, for one test.
func SetFew(t *testing.T, n int) {
	former := few
	few = n
	t.Cleanup(func() { few = former })
}
