package server_test

import (
	"io"
	"net"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server"
)

// patience counts the writes of a server that may last forever.
type patience struct {
	net.Listener
	endless atomic.Int64
}

func (p *patience) Accept() (net.Conn, error) {
	c, err := p.Listener.Accept()
	return &limited{Conn: c, of: p}, err
}

type limited struct {
	net.Conn
	of    *patience
	until atomic.Pointer[time.Time]
}

func (l *limited) SetWriteDeadline(t time.Time) error {
	l.until.Store(&t)
	return l.Conn.SetWriteDeadline(t)
}

func (l *limited) Write(data []byte) (int, error) {
	if until := l.until.Load(); until == nil || until.IsZero() {
		l.of.endless.Add(1)
	}
	return l.Conn.Write(data)
}

// A client may stop reading at any moment of a backup, also at its end. No write waits for it without a limit.
func TestEveryWriteOfABackupHasALimit(t *testing.T) {
	s := start(t, func(c *server.Config) {
		c.APIKeys, c.Policy = writeFile(t, keyLine("root", "")), writeFile(t, backupRules)
	})
	watched := httptest.NewUnstartedServer(s.Handler())
	p := &patience{Listener: watched.Listener}
	watched.Listener = p
	watched.Config.WriteTimeout = time.Minute
	watched.Start()
	defer watched.Close()
	response := backupFrom(t, watched.URL)
	defer response.Body.Close()
	_, err := io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	assert.Zero(t, p.endless.Load())
}
