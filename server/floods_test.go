package server_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server"
)

var (
	pingFrame     = []byte{0x89, 0x80, 0, 0, 0, 0}
	beginFrame    = []byte{0x01, 0x80, 0, 0, 0, 0} // of a message without an end
	fragmentFrame = []byte{0x00, 0x80, 0, 0, 0, 0}
)

// A client sends pings without end, over a socket of a room or of events. The server answers a few of them.
func TestFloodOfPingsGetsFewPongs(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, path := range []string{"/ws", "/api/documents/d/events"} {
		conn := rawSocket(t, s.URL, path)
		_, err := conn.Write(bytes.Repeat(pingFrame, 1000))
		require.NoError(t, err)
		assertPong(t, conn)
		assert.Less(t, heard(t, conn)/2, int64(100), path)
	}
}

// A client sends fragments without end, which never become a message that could be counted. The server receives no more than the address may
// send. A socket of the same address that sends little does not wait.
func TestFragmentsCountForTheLimitOfTheAddress(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/ws", "/api/documents/d/events"} {
		s := start(t, func(c *server.Config) { c.AddressRate, c.AddressBurst = 0.001, 20 })
		calm, conn := rawSocket(t, s.URL, "/ws"), rawSocket(t, s.URL, path)
		_, err := conn.Write(append(bytes.Clone(beginFrame), append(bytes.Repeat(fragmentFrame, 5000), pingFrame...)...))
		require.NoError(t, err)
		assert.Zero(t, heard(t, conn), "the ping is behind the fragments")

		_, err = calm.Write(pingFrame)
		require.NoError(t, err)
		assertPong(t, calm)
	}
}

// assertPong waits for a pong.
func assertPong(t *testing.T, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(30*time.Second)))
	pong := make([]byte, 2)
	_, err := io.ReadFull(conn, pong)
	require.NoError(t, err)
	assert.Equal(t, []byte{0x8a, 0}, pong)
}

// heard returns how many bytes come within a second.
func heard(t *testing.T, conn net.Conn) int64 {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Second)))
	n, err := io.Copy(io.Discard, conn)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	return n
}

// rawSocket opens a WebSocket and returns its connection after the handshake, and after the first message of a room.
func rawSocket(t *testing.T, url, path string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", path)
	require.NoError(t, err)
	from := bufio.NewReader(conn)
	response, err := http.ReadResponse(from, nil)
	require.NoError(t, err)
	_ = response.Body.Close() // it has none; the connection stays open
	require.Equal(t, http.StatusSwitchingProtocols, response.StatusCode)
	if path == "/ws" {
		_, err = from.ReadString('}')
		require.NoError(t, err)
	}
	return conn
}
