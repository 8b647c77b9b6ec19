//go:build unix

package main

import (
	"math"
	"syscall"
)

// maxFiles returns how many files this process may have open; 0 means no limit.
func maxFiles() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil || limit.Cur > math.MaxInt32 {
		return 0
	}
	return int(limit.Cur)
}
