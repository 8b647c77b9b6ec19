package loopback_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/loopback"
)

// Two tests that ask for a port before they listen get different ones.
func TestPortsAreForOneCallerAlone(t *testing.T) {
	seen := map[string]bool{}
	for range 500 {
		port, err := loopback.FreePort()
		require.NoError(t, err)
		assert.False(t, seen[port], "port %s twice", port)
		seen[port] = true
	}
}
