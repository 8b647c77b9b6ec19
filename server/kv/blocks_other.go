//go:build !linux

package kv

// reserveBlocks does nothing on systems where a file cannot allocate blocks in advance.
func reserveBlocks(string, int64) error { return nil }
