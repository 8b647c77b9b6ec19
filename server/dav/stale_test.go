package dav

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// The lock of a program ends just before the transaction that makes its collection. The program is not told that there is
// a collection.
func TestACollectionIsNotMadeWithoutItsLock(t *testing.T) {
	s := newInterruptedStore(t)
	g := s.right(s.handler(s.interrupted, s.interrupted), place{"c"})
	s.before = func() { require.NoError(t, s.table.Release(context.Background(), g.lease.ID, "ann")) }
	require.ErrorIs(t, g.makeDir(t.Context(), g.place), errIfFailed)
}
