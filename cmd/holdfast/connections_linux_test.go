package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// One address opens more connections than the server may have files, and keeps them. Those that it may have are served, and so are others on
// new connections. The store, which needs files too, goes on.
func TestConnectionsOfOneAddressDoNotUseAllFiles(t *testing.T) {
	const files = 500
	p := serveBy(t, []string{"/bin/sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$0" "$@"`, files)})
	kept := 0
	for range files {
		conn, err := net.Dial("tcp", p.addr)
		require.NoError(t, err)
		defer conn.Close()
		if answered(conn) {
			kept++
		}
	}
	assert.Greater(t, kept, files/8)

	other := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext, DisableKeepAlives: true,
	}}
	defer other.CloseIdleConnections()
	for range 10 {
		request, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+p.addr+"/api/documents/d/lock", nil)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer other")
		response, err := other.Do(request)
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, response.StatusCode)
		require.NoError(t, response.Body.Close())
	}
	p.stop(t)
	assert.Contains(t, p.log.String(), "a new connection was closed")
}

// answered sends a request over a connection and reports whether there was a response. The connection stays open.
func answered(conn net.Conn) bool {
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	_, err := fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if err != nil {
		return false
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	return err == nil && response.Body.Close() == nil
}
