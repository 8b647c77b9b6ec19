package locktest

import (
	"testing"
	"time"
)

// SetPatience shortens the patience of the suite for a Locker that must fail.
func SetPatience(t *testing.T, d time.Duration) {
	before := patience
	patience = d
	t.Cleanup(func() { patience = before })
}
