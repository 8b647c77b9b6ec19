package loopback_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/loopback"
)

// Two tests that ask for a port before they listen get different ones, and nobody gets it who asks the system for any port.
func TestPortsAreForOneCallerAlone(t *testing.T) {
	anybody := 32768
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		anybody, err = strconv.Atoi(strings.Fields(string(text))[0])
		require.NoError(t, err)
	}
	seen := map[string]bool{}
	for range 500 {
		port, err := loopback.FreePort()
		require.NoError(t, err)
		assert.False(t, seen[port], "port %s twice", port)
		seen[port] = true
		number, err := strconv.Atoi(port)
		require.NoError(t, err)
		assert.Less(t, number, anybody)
	}
}
