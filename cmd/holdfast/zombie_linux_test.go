package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The lock is lost, and the program has to be killed. It has left a process behind that is in no group of the program, and does not wait for
// its dead child, which is. The command ends nevertheless.
func TestLostLockDoesNotWaitForTheDead(t *testing.T) {
	t.Parallel()
	_, as := serveUsers(t)
	marker := fileIn(t, "marker")
	script := `trap "" TERM; (sleep 120 & touch "$0"; exec setsid sleep 120) </dev/null >/dev/null 2>&1 & while :; do sleep 0.05; done`
	cmd, _, stderr := as("ann").start("", "lock", "plan", "--grace", "200ms", "--ttl", "15s", "--", "sh", "-c", script, marker)
	require.Eventually(t, exists(marker), soon, 10*time.Millisecond)
	require.Equal(t, 0, as("root").run("", "break", "plan", "--reason", "maintenance").code)
	assert.Equal(t, exitLost, ended(t, cmd), stderr.String())
}
