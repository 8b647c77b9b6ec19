//go:build !unix

package kv

// freeOn returns -1: the free space is unknown.
func freeOn(string) int64 { return -1 }

// filesOn returns -1: the number is unknown.
func filesOn(string) int64 { return -1 }
