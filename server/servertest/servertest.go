// Package servertest runs servers inside tests.
package servertest

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// Server is a running server of a test.
type Server struct {
	*server.Server
	URL string

	http *httptest.Server
}

// Config returns the defaults with an empty data directory, and with locks that do not run out however slow this
// machine is: most tests send no heartbeats. A test of expiry sets its own LockTTL.
func Config(t testing.TB) server.Config {
	t.Helper()
	c := server.DefaultConfig()
	c.DataDir, c.LockTTL = kvtest.Dir(t), 10*time.Minute
	return c
}

// Unlimited returns Config without limits on the rate of requests.
func Unlimited(t testing.TB) server.Config {
	t.Helper()
	c := Config(t)
	Unlimit(&c)
	return c
}

// Unlimit removes the limits on the rate of requests, which a test on a fast machine would reach.
func Unlimit(c *server.Config) { c.Rate, c.NewRate, c.AddressRate, c.UserRate = 0, 0, 0, 0 }

// Start runs a server until the end of the test, or until Stop.
func Start(t testing.TB, c server.Config) *Server {
	t.Helper()
	started, err := server.Start(t.Context(), c, nil)
	require.NoError(t, err)
	s := &Server{Server: started, http: httptest.NewServer(started.Handler())}
	s.URL = s.http.URL
	t.Cleanup(func() { s.Stop(t) })
	return s
}

// Stop drains and closes the server. A second call changes nothing.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if s.http == nil {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	s.Drain(ctx)
	s.http.CloseClientConnections()
	s.http.Close()
	s.http = nil
	require.NoError(t, s.Close())
}
