package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// openTerminal returns both ends of a new pseudoterminal (pty(7)).
func openTerminal(t *testing.T) (user, program *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("this machine has no pseudoterminals: %v", err)
	}
	t.Cleanup(func() { _ = user.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = program.Close() })
	return user, program
}

// At a terminal the program reads what the user types, and Ctrl+C reaches it.
func TestLockAtATerminal(t *testing.T) {
	t.Parallel()
	p := serveInProcess(t)
	for script, keys := range map[string]string{
		"echo ready; read x; echo got $x; exit 7":                                  "it\n",
		"trap 'echo got it; exit 7' INT; echo ready; while :; do sleep 0.05; done": "\x03",
	} {
		user, program := openTerminal(t)
		cmd := exec.Command(os.Args[0], "lock", "plan", "--", "sh", "-c", script)
		cmd.Env = append(os.Environ(), asCommand+"=yes", "GORACE=atexit_sleep_ms=0", "HOLDFAST_SERVER=http://"+p.addr)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		require.NoError(t, cmd.Start())
		require.NoError(t, program.Close())
		shown, typed := "", false
		for buffer := make([]byte, 1024); ; {
			n, err := user.Read(buffer) // it fails when the program has ended
			if shown += string(buffer[:n]); err != nil {
				break
			}
			if !typed && strings.Contains(shown, "ready") {
				_, err = user.WriteString(keys)
				require.NoError(t, err)
				typed = true
			}
		}
		assert.Equal(t, 7, ended(t, cmd), shown)
		assert.Contains(t, shown, "got it")
	}
}
