package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// testMs is the limit of a runner for a test, in milliseconds. The machine may be busy.
const testMs = "60000"

// installed puts the built package beside the test runners, as npm does.
var installed = sync.OnceValues(func() (string, error) {
	dir, err := filepath.Abs("runners")
	if err != nil {
		return "", err
	}
	to := filepath.Join(dir, "node_modules", "holdfast")
	if err := os.RemoveAll(to); err != nil {
		return "", err
	}
	return dir, os.CopyFS(to, os.DirFS("../../dist"))
})

// node runs Node.js in a folder that finds the package and the runners.
func node(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("node", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

// On a server the package does nothing, and its calls reject with "unsupported".
func TestPackageOnAServer(t *testing.T) {
	t.Parallel()
	dir, err := installed()
	require.NoError(t, err)
	node(t, dir, "--test", "server.test.mjs")
}

// holdfast/testing keeps the contract in Node.js.
func TestTestingInNode(t *testing.T) {
	t.Parallel()
	dir, err := installed()
	require.NoError(t, err)
	node(t, dir, "--test", "tabs.test.mjs", "service.test.mjs")
}

// The published test runners run the examples of docs/testing.md.
func TestTestingInRunners(t *testing.T) {
	t.Parallel()
	from, err := installed()
	require.NoError(t, err)
	modules := filepath.Join(from, "node_modules")
	require.DirExists(t, filepath.Join(modules, "vitest"), "the test runners are not installed; run make test-docs")
	dir := t.TempDir()
	require.NoError(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type": "module"}`), 0o644))
	for _, b := range blocksIn(t, "mjs") {
		name := regexp.MustCompile(`[\w.]+\.mjs`).FindString(b.text)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(b.text), 0o644))
	}
	for _, environment := range []string{"jsdom", "happy-dom"} {
		node(t, dir, "node_modules/vitest/vitest.mjs", "run", "--environment", environment, "--testTimeout", testMs)
	}
	node(t, dir, "--experimental-vm-modules", "node_modules/jest/bin/jest.js", "--env", "jsdom", "--testMatch", "**/*.jest.mjs", "--transform", "{}", "--testTimeout", testMs)
}
