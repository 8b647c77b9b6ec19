//go:build unix

package main

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/client"
)

// prepareProcess makes the program the first of a group of its own, so that everything that it starts ends with it. At a terminal it stays
// in the group of the shell's job, or it could not read from the terminal; then only the program itself gets signals. The returned
// function sends one, and reports whether a process got it. A process that is suspended would not end at SIGTERM, so it continues.
func prepareProcess(cmd *exec.Cmd) (kill func(syscall.Signal) bool) {
	_, err := unix.IoctlGetInt(int(os.Stdin.Fd()), unix.TIOCGPGRP)
	ownGroup := err != nil
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: ownGroup}
	endWithParent(cmd.SysProcAttr)
	return func(s syscall.Signal) bool {
		if !ownGroup {
			return cmd.Process.Signal(s) == nil
		}
		sent := syscall.Kill(-cmd.Process.Pid, s) == nil
		if s == syscall.SIGTERM {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGCONT)
		}
		return sent
	}
}

// forward sends a signal to the program. If this process is to be suspended, the program is suspended first, because nobody renews the lock
// meanwhile. It continues if the lock is still there; otherwise it ends.
func forward(s os.Signal, kill func(syscall.Signal) bool, lease *client.Lease) {
	switch {
	case s == syscall.SIGTSTP:
		kill(syscall.SIGSTOP)
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
	case s != syscall.SIGCONT || lease.Err() == nil:
		kill(s.(syscall.Signal))
	}
}

// forwarded delivers the signals for the program. The terminal sends SIGINT, SIGQUIT and SIGTSTP to the program itself, if it is in the same
// group. Under nohup, SIGHUP stays ignored, by the program too.
func forwarded() (<-chan os.Signal, func()) {
	signals := make(chan os.Signal, 8)
	ignored := make(chan os.Signal, 1)
	if _, err := unix.IoctlGetInt(int(os.Stdin.Fd()), unix.TIOCGPGRP); err == nil {
		signal.Notify(ignored, syscall.SIGINT, syscall.SIGQUIT)
	} else {
		signal.Notify(signals, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTSTP, syscall.SIGCONT)
	}
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	return signals, func() { signal.Stop(signals); signal.Stop(ignored) }
}
