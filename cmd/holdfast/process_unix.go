//go:build unix

package main

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// prepareProcess makes the program the first of a group of its own, so that everything that it starts ends with it. At a terminal it stays
// in the group of the shell's job, or it could not read from the terminal; then only the program itself gets signals. The returned
// function sends one, and reports whether a process got it.
func prepareProcess(cmd *exec.Cmd) (kill func(syscall.Signal) bool) {
	_, err := unix.IoctlGetInt(int(os.Stdin.Fd()), unix.TIOCGPGRP)
	ownGroup := err != nil
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: ownGroup}
	endWithParent(cmd.SysProcAttr)
	return func(s syscall.Signal) bool {
		if ownGroup {
			return syscall.Kill(-cmd.Process.Pid, s) == nil
		}
		return cmd.Process.Signal(s) == nil
	}
}

// forwarded delivers the signals for the program. The terminal sends SIGINT and SIGQUIT to the program itself, if it is in the same group.
func forwarded() (<-chan os.Signal, func()) {
	signals := make(chan os.Signal, 8)
	if _, err := unix.IoctlGetInt(int(os.Stdin.Fd()), unix.TIOCGPGRP); err == nil {
		ignored := make(chan os.Signal, 1)
		signal.Notify(ignored, syscall.SIGINT, syscall.SIGQUIT)
		signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
		return signals, func() { signal.Stop(signals); signal.Stop(ignored) }
	}
	signal.Notify(signals, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	return signals, func() { signal.Stop(signals) }
}
