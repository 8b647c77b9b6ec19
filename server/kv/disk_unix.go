//go:build unix

package kv

import "syscall"

// freeOn returns the bytes on the disk of a directory that this process may still use, or -1 if unknown.
func freeOn(dir string) int64 {
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil {
		return -1
	}
	return int64(fs.Bavail) * int64(fs.Bsize) //nolint:unconvert // the types differ between systems
}

// filesOn returns the number of files that the disk of a directory has room for (inodes), or -1 if unknown. Some file systems have no limit.
func filesOn(dir string) int64 {
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil || fs.Files == 0 {
		return -1
	}
	return int64(fs.Ffree)
}
