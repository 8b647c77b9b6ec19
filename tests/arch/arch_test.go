// Package arch checks the structure of the repository: it fails when a package imports a package that it must not
// import, when a file or a function grows too long, or when a file names the machine on which it was written. Rules are
// functions over data. planted_test.go shows for each rule that it can fail.
package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../.."

// run returns the output of a command. It adds env to the command's environment.
func run(t *testing.T, env []string, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	return out
}

// list returns the packages that match the patterns, with their dependencies. It skips folders that do not exist.
func list(t *testing.T, env []string, patterns ...string) []pkg {
	t.Helper()
	args := []string{"list", "-deps", "-json=ImportPath,Standard,Imports,TestImports,XTestImports,Deps"}
	known := len(args)
	for _, pattern := range patterns {
		if _, err := os.Stat(filepath.Join(root, strings.TrimSuffix(pattern, "..."))); err == nil {
			args = append(args, pattern)
		}
	}
	if len(args) == known {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(run(t, env, "go", args...)))
	var pkgs []pkg
	for {
		var p pkg
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return pkgs
		}
		require.NoError(t, err)
		pkgs = append(pkgs, p)
	}
}

// files returns every file that is committed or could be. It omits files that git ignores.
func files(t *testing.T) []source {
	t.Helper()
	// The repository may belong to another user, for instance in a container.
	out := run(t, nil, "git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	var sources []source
	for _, path := range strings.Split(strings.TrimRight(string(out), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, path))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, but the deletion is not committed yet
		}
		require.NoError(t, err)
		sources = append(sources, source{path, text})
	}
	require.NotEmpty(t, sources)
	return sources
}

func TestLayers(t *testing.T) {
	native := list(t, nil, "./...")
	browser := list(t, []string{"GOOS=js", "GOARCH=wasm"},
		"./lock/...", "./autosave/...", "./jsbridge/...", "./opfs/...", "./wasm/...")
	for name, pkgs := range map[string][]pkg{"native": native, "browser": browser} {
		assert.Empty(t, wrongArrows(pkgs), name)
		assert.Empty(t, strayJS(pkgs), name)
		assert.Empty(t, strayEtcd(pkgs), name)
	}
	assert.Empty(t, tooHeavy(browser))
	architecture, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	require.NoError(t, err)
	assert.Empty(t, undrawn(string(architecture)))
}

func TestSources(t *testing.T) {
	sources := files(t)
	assert.Empty(t, tooLong(sources))
	assert.Empty(t, unbuilt(sources))
	assert.Empty(t, wrongScripts(sources))
	assert.Empty(t, machineNames(sources))
	assert.Empty(t, oddDecisions(sources))
	assert.Empty(t, unclearSentences(sources))
	for _, s := range sources {
		if filepath.Ext(s.path) != ".go" {
			continue
		}
		p, err := parse(s)
		if !assert.NoError(t, err) {
			continue
		}
		assert.Empty(t, longFunctions(p))
		assert.Empty(t, straysFuncOf(p))
		assert.Empty(t, unmarkedJS(p))
	}
}
