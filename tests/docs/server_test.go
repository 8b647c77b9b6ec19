package docs

import (
	"testing"

	"github.com/holdfast-dev/holdfast/tests/serving"
)

// serve runs "holdfast serve" with its own store until the test ends.
func serve(t *testing.T) *serving.Server {
	t.Helper()
	return serving.Run(t, "--data-dir", t.TempDir())
}
