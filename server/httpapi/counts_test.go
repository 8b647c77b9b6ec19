package httpapi

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An address that no longer waits for a turn, and has none, leaves nothing in memory.
func TestTurnsForgetAddresses(t *testing.T) {
	var all turns
	leave, ok := all.take(t.Context(), "a", 1)
	require.True(t, ok)
	other, ok := all.take(t.Context(), "b", 1)
	require.True(t, ok)
	ended, end := context.WithCancel(t.Context())
	end()
	_, ok = all.take(ended, "a", 1)
	require.False(t, ok)
	require.Len(t, all.of, 2)
	leave()
	other()
	assert.Empty(t, all.of)
}
