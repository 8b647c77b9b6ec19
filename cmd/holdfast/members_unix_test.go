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
	leader, other := leaderAndOther(t, "1s")
	require.NoError(t, other.Process.Signal(syscall.SIGSTOP))
	leader.stop(t)
	assert.Contains(t, leader.log.String(), "the store did not close in time")
}

// etcd waits a second for the connections of the other members. A leader that stops while the others run uses what is left of the limit for
// that, and warns of nothing. The limit is that of the default after its drain.
func TestALeaderStopsBesideMembersThatRun(t *testing.T) {
	leader, _ := leaderAndOther(t, "3s")
	leader.stop(t)
	assert.NotContains(t, leader.log.String(), "did not close in time")
}

func leaderAndOther(t *testing.T, stopLimit string) (leader, other *process) {
	url := func() string {
		port, err := loopback.FreePort()
		require.NoError(t, err)
		return "http://127.0.0.1:" + port
	}
	blobs, client := t.TempDir(), url()
	leader = serveInProcess(t, "--name", "a", "--blobs", blobs, "--peer-url", url(), "--client-url", client, "--stop-limit", stopLimit)
	return leader, serveInProcess(t, "--name", "b", "--blobs", blobs, "--peer-url", url(), "--join", client)
}
