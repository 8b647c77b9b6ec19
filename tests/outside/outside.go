// Package outside creates Go modules that use Holdfast's packages from outside.
package outside

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

const path = "github.com/holdfast-dev/holdfast"

// Module makes dir the root of a module that uses Holdfast from the clone at root. It has Holdfast's requirements at
// the same versions, so no lookup is needed.
func Module(t testing.TB, dir, root string) {
	t.Helper()
	if err := module(dir, root); err != nil {
		t.Fatalf("outside: %v", err)
	}
}

func module(dir, root string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		return err
	}
	mod = bytes.Replace(mod, []byte("module "+path), []byte("module example.org/consumer"), 1)
	mod = regexp.MustCompile(`(?ms)^tool \(.*?^\)$`).ReplaceAll(mod, nil)
	mod = fmt.Appendf(mod, "\nrequire %s v0.0.0\n\nreplace %s => %s\n", path, path, root)
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), mod, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o644)
}
