package main

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/loopback"
)

// One address opens many connections to the address of the metrics and keeps them. It gets few, and another address is served.
func TestConnectionsToTheMetricsAreLimited(t *testing.T) {
	port, err := loopback.FreePort()
	require.NoError(t, err)
	at := "127.0.0.1:" + port
	p := serveBy(t, nil, "--metrics-addr", at)
	kept := 0
	for range 100 {
		conn, err := net.Dial("tcp", at)
		require.NoError(t, err)
		defer conn.Close()
		if answered(conn) {
			kept++
		}
	}
	assert.Equal(t, 24, kept)
	other, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext(t.Context(), "tcp", at)
	require.NoError(t, err)
	defer other.Close()
	assert.True(t, answered(other))
	p.stop(t)
}
