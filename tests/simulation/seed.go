//go:build simulated

package simulation

import _ "unsafe" // for go:linkname

// Deterministic reports whether a run depends only on its seed.
const Deterministic = true

// seedRuntime is in the runtime that the command overlay has changed.
//
//go:linkname seedRuntime
func seedRuntime(seed uint64)
