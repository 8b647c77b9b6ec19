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

// Each Go block is a program of another module. Its output must match its comment "Output:". TestFaultsInBrowsers runs those of
// docs/testing.md.
func TestGo(t *testing.T) {
	t.Parallel()
	for _, b := range blocksIn(t, "go") {
		if b.page == testingPage {
			continue
		}
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

// promised returns the output that a program's last comment states.
func promised(program string) string {
	_, said, _ := strings.Cut(program, "// Output:")
	return strings.TrimSpace(regexp.MustCompile(`(?m)^\s*// ?|^\}$`).ReplaceAllString(said, ""))
}
