package main

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAStopDoesNotWaitForUnusedConnections(t *testing.T) {
	u := &unused{}
	seen := make(chan struct{}, 1)
	server := &http.Server{ConnState: func(conn net.Conn, state http.ConnState) {
		u.note(conn, state)
		if state == http.StateNew {
			seen <- struct{}{}
		}
	}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(listener) }()
	conn, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	<-seen

	u.close()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // http.Server alone would wait for five
	defer cancel()
	assert.NoError(t, server.Shutdown(ctx))
}
