package locktest

import (
	"testing"
	"time"
)

// SetPatience shortens the suite's for a Locker that will not pass.
func SetPatience(t *testing.T, d time.Duration) {
	before := patience
	patience = d
	t.Cleanup(func() { patience = before })
}
