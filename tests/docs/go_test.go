package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/outside"
)

// Each block of Go is a program of another module. What it prints is what its comment "Output:" says.
func TestGo(t *testing.T) {
	t.Parallel()
	for _, b := range blocksIn(t, "go") {
		t.Run(b.name(), func(t *testing.T) {
			dir := t.TempDir()
			outside.Module(t, dir, "../..")
			require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(b.text), 0o644))
			cmd := exec.Command("go", "run", ".")
			cmd.Dir = dir
			var failure strings.Builder
			cmd.Stderr = &failure
			out, err := cmd.Output()
			require.NoError(t, err, failure.String())
			assert.Equal(t, promised(b.text), strings.TrimSpace(string(out)))
		})
	}
}

// promised is what a program's last comment says it prints.
func promised(program string) string {
	_, said, _ := strings.Cut(program, "// Output:")
	return strings.TrimSpace(regexp.MustCompile(`(?m)^\s*// ?|^\}$`).ReplaceAllString(said, ""))
}
