//go:build !unix

package main

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/holdfast-dev/holdfast/client"
)

// prepareProcess returns a function that ends the program: there are no other signals here. It reports whether the program was there.
func prepareProcess(cmd *exec.Cmd) (kill func(syscall.Signal) bool) {
	return func(syscall.Signal) bool { return cmd.Process.Kill() == nil }
}

// forward ends the program.
func forward(_ os.Signal, kill func(syscall.Signal) bool, _ *client.Lease) { kill(syscall.SIGKILL) }

// forwarded delivers the signals for the program.
func forwarded() (<-chan os.Signal, func()) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt)
	return signals, func() { signal.Stop(signals) }
}
