package docs

import (
	"testing"

	"github.com/holdfast-dev/holdfast/tests/serving"
)

// serve runs "holdfast serve" with its own store until the test ends, and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	return serving.Run(t, "--data-dir", t.TempDir()).URL
}
