//go:build !simulated

package simulation

// Deterministic reports whether a run depends only on its seed.
const Deterministic = false

func seedRuntime(uint64) {}
