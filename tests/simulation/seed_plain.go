//go:build !simulated

package simulation

// Deterministic reports whether a run depends on its seed alone.
const Deterministic = false

func seedRuntime(uint64) {}
