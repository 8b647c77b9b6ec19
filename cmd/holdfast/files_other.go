//go:build !unix

package main

// maxFiles returns how many files this process may have open; 0 means no limit.
func maxFiles() int { return 0 }
