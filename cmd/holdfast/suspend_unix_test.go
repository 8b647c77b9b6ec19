//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Ctrl+Z reaches holdfast, but not a program in a group of its own. Nobody renews the lock then, so the program must not go on.
func TestProgramIsSuspendedWithHoldfast(t *testing.T) {
	t.Parallel()
	_, as := serveUsers(t)
	const writes = `for i in $(seq 600); do echo x >> "$0"; sleep 0.05; done`
	marker := fileIn(t, "marker")
	size := func() int64 { i, err := os.Stat(marker); require.NoError(t, err); return i.Size() }
	cmd, _, stderr := as("ann").start("", "lock", "plan", "--ttl", "2s", "--", "sh", "-c", writes, marker)
	require.Eventually(t, exists(marker), soon, 10*time.Millisecond)

	require.NoError(t, cmd.Process.Signal(syscall.SIGTSTP))
	next, _, _ := as("bob").start("", "lock", "plan", "--", "sleep", "1")
	require.Equal(t, 0, ended(t, next), "Bob held the lock for a second")
	last := size()
	time.Sleep(300 * time.Millisecond) // in which a program that runs writes
	assert.Equal(t, last, size())

	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	assert.Equal(t, exitLost, ended(t, cmd), stderr.String())
	assert.Equal(t, last, size(), "it wrote nothing after the lock was lost")

	marker = fileIn(t, "marker")
	cmd, _, stderr = as("ann").start("", "lock", "plan", "--", "sh", "-c", writes, marker)
	require.Eventually(t, exists(marker), soon, 10*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTSTP))
	suspended := func() bool {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED|syscall.WNOHANG, nil)
		return err == nil && status.Stopped()
	}
	require.Eventually(t, suspended, soon, 10*time.Millisecond, "a shell continues the program only after it has stopped")
	last = size()
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	require.Eventually(t, func() bool { return size() > last }, soon, 10*time.Millisecond, "it goes on")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, exitSignal+int(syscall.SIGTERM), ended(t, cmd), stderr.String())
}

// A program under nohup goes on when its terminal is closed.
func TestIgnoredHangUpStaysIgnored(t *testing.T) {
	t.Parallel()
	_, as := serveUsers(t)
	marker := fileIn(t, "marker")
	cmd, _, stderr := as("ann").prepare("", "lock", "plan", "--", "sh", "-c", `trap 'exit 5' USR1; touch "$0"; while :; do sleep 0.05; done`, marker)
	shell := exec.Command("sh", append([]string{"-c", `trap "" HUP; exec "$0" "$@"`}, cmd.Args...)...)
	shell.Env, shell.Stdin, shell.Stdout, shell.Stderr = cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr
	require.NoError(t, shell.Start())
	require.Eventually(t, exists(marker), soon, 10*time.Millisecond)
	require.NoError(t, shell.Process.Signal(syscall.SIGHUP))
	require.NoError(t, shell.Process.Signal(syscall.SIGUSR1)) // it is forwarded after SIGHUP
	assert.Equal(t, 5, ended(t, shell), stderr.String())
}
