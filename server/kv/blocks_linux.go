package kv

import (
	"os"
	"syscall"
)

// keepSize leaves the length of a file unchanged (FALLOC_FL_KEEP_SIZE).
const keepSize = 1

// reserveBlocks allocates disk blocks for the first bytes of a file, written or not, so that a later write there
// never finds the disk full.
func reserveBlocks(path string, bytes int64) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // the error of Fallocate is the one that counts
	return syscall.Fallocate(int(file.Fd()), keepSize, 0, bytes)
}
