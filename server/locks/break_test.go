package locks

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The lease of the stubs may be gone in etcd before its time. The next attempt to break a lock uses another one.
func TestBreakUsesAnotherLeaseAfterTheStubsLostTheirs(t *testing.T) {
	table := opened(t)
	lease, err := table.Acquire(t.Context(), Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "ann"}, TTL: time.Minute, Ticket: "t"})
	require.NoError(t, err)
	lost, err := table.stubs.lease(t.Context(), table.store, StubKept)
	require.NoError(t, err)
	require.NoError(t, lost.Close(t.Context()))
	require.Error(t, table.Break(t.Context(), lease, Holder{ID: "root"}, "test"))
	require.NoError(t, table.Break(t.Context(), lease, Holder{ID: "root"}, "test"))
}
