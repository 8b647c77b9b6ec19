//go:build unix

package main

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/loopback"
)

// The leader of a cluster offers its leadership to another member, which does not answer because it stops too. The leader ends in time.
func TestALeaderDoesNotWaitForAMemberThatDoesNotAnswer(t *testing.T) {
	url := func() string {
		port, err := loopback.FreePort()
		require.NoError(t, err)
		return "http://127.0.0.1:" + port
	}
	blobs, client := t.TempDir(), url()
	leader := serveInProcess(t, "--name", "a", "--blobs", blobs, "--peer-url", url(), "--client-url", client, "--stop-limit", "1s")
	other := serveInProcess(t, "--name", "b", "--blobs", blobs, "--peer-url", url(), "--join", client)
	require.NoError(t, other.Process.Signal(syscall.SIGSTOP))
	leader.stop(t)
	assert.Contains(t, leader.log.String(), "the store did not close in time")
}
