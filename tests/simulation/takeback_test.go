package simulation

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each file of testdata plants one defect, the first ten by reverting its fix. It contains an explanation, and then changes of files of the
// repository, each with the lines before and after.
//
//	=== lock/records.go
//	--- before
//	...
//	--- after
//	...

var findFlag = flag.Duration("find", 0, "how long the simulation may look for each defect of testdata; 0 does not look")

const repository = "../.."

// change replaces some lines of a file.
type change struct{ file, before, after string }

func readChanges(t *testing.T, name string) (changes []change) {
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	for _, part := range strings.Split(string(text), "\n=== ")[1:] {
		file, rest, ok := strings.Cut(part, "\n--- before\n")
		require.True(t, ok, "%s: no lines before", name)
		before, after, ok := strings.Cut(rest, "\n--- after")
		require.True(t, ok, "%s: no lines after", name)
		changes = append(changes, change{file, before, strings.Trim(after, "\n")})
	}
	require.NotEmpty(t, changes, name)
	return changes
}

// apply returns the changed files by their names.
func apply(t *testing.T, changes []change) map[string]string {
	files := make(map[string]string)
	for _, c := range changes {
		if files[c.file] == "" {
			text, err := os.ReadFile(filepath.Join(repository, c.file))
			require.NoError(t, err)
			files[c.file] = string(text)
		}
		require.Equal(t, 1, strings.Count(files[c.file], c.before), "%s has to have this once; the fix has changed, so change what takes it back:\n%s", c.file, c.before)
		files[c.file] = strings.Replace(files[c.file], c.before, c.after, 1)
	}
	return files
}

// overlay writes the changed files and an overlay of them for the go command, and returns its name.
func overlay(t *testing.T, files map[string]string) string {
	dir, replace := t.TempDir(), make(map[string]string)
	for file, text := range files {
		changed := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		require.NoError(t, os.WriteFile(changed, []byte(text), 0o600))
		original, err := filepath.Abs(filepath.Join(repository, file))
		require.NoError(t, err)
		replace[original] = changed
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	name := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(name, text, 0o600))
	return name
}

func defects(t *testing.T) []string {
	names, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	return names
}

// The changes that plant a defect apply to the current code, which then still compiles.
func TestDefectsApply(t *testing.T) {
	for _, name := range defects(t) {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			files := apply(t, readChanges(t, name))
			build := exec.Command("go", "build", "-overlay", overlay(t, files))
			build.Dir = repository
			for file := range files {
				build.Args = append(build.Args, "./"+filepath.Dir(file))
			}
			out, err := build.CombinedOutput()
			require.NoError(t, err, "%s", out)
		})
	}
}

// The simulation finds each planted defect, from any seed, without a hint.
func TestFindsDefects(t *testing.T) {
	if *findFlag == 0 {
		t.Skip("it builds the simulation again for each defect; -find says how long it may look for one")
	}
	for _, name := range defects(t) {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			binary := filepath.Join(t.TempDir(), "simulation.test")
			build := exec.Command("go", "test", "-c", "-o", binary, "-overlay", overlay(t, apply(t, readChanges(t, name))), ".")
			out, err := build.CombinedOutput()
			require.NoError(t, err, "%s", out)
			run := exec.Command(binary, "-test.run", "TestSimulation$", "-test.v", "-for", findFlag.String(), "-seed", strconv.FormatUint(*seedFlag, 10))
			run.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
			began := time.Now()
			out, err = run.CombinedOutput()
			require.Error(t, err, "nothing was found:\n%s", out)
			assert.Contains(t, string(out), "breaks a promise")
			assert.NotContains(t, string(out), "panic:")
			t.Log(fmt.Sprintf("found after %s:\n", time.Since(began).Round(time.Millisecond)) + string(out))
		})
	}
}
