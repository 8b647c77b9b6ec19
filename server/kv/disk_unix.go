//go:build unix

package kv

import "syscall"

// freeOn returns the bytes that are free for this process where a directory lies, or -1 if that is unknown.
func freeOn(dir string) int64 {
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil {
		return -1
	}
	return int64(fs.Bavail) * int64(fs.Bsize) //nolint:unconvert // the types differ between systems
}
