//go:build simulated

// The function of seed.go has no body.
