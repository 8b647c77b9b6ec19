//go:build unix && !linux

package main

import "syscall"

// endWithParent does nothing: these systems have no such signal.
func endWithParent(*syscall.SysProcAttr) {}
