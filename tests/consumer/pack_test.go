package consumer

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pack is the result of one build.
type pack struct {
	tarball string
	bytes   []byte
}

var first = sync.OnceValues(func() (pack, error) { return build("../..", "../../.cache/consumer") })

// packed returns the tarball of this clone, built once for all tests.
func packed(t *testing.T) pack {
	t.Helper()
	p, err := first()
	require.NoError(t, err)
	return p
}

func build(root, out string) (pack, error) {
	out, err := filepath.Abs(out)
	if err != nil {
		return pack{}, err
	}
	cmd := exec.Command("go", "run", "./web/build", "-out", filepath.Join(out, "dist"), "-pack", out)
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	printed, err := cmd.Output()
	if err != nil {
		return pack{}, err
	}
	p := pack{tarball: strings.TrimSpace(string(printed))}
	p.bytes, err = os.ReadFile(p.tarball)
	return p, err
}

// The same sources give the same bytes, independent of their folder and their times.
func TestTwoBuilds(t *testing.T) {
	t.Parallel()
	one, two := clone(t, time.Now()), clone(t, time.Now().Add(-48*time.Hour))
	a, err := build(one, t.TempDir())
	require.NoError(t, err)
	b, err := build(two, t.TempDir())
	require.NoError(t, err)
	assert.True(t, bytes.Equal(a.bytes, b.bytes), "%s and %s differ", a.tarball, b.tarball)
	for _, dir := range []string{one, two} {
		assert.False(t, mentions(t, unpack(t, a.tarball), dir), "the package names the folder it was built in")
	}
}

// clone copies the sources as a new clone would contain them, without git and with other times.
func clone(t *testing.T, at time.Time) string {
	t.Helper()
	dir := t.TempDir()
	names := run(t, "../..", "git", "ls-files", "-co", "--exclude-standard")
	for _, name := range strings.Fields(names) {
		data, err := os.ReadFile(filepath.Join("../..", name))
		if os.IsNotExist(err) {
			continue // removed, but not yet from git
		}
		require.NoError(t, err)
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, data, 0o644))
		require.NoError(t, os.Chtimes(path, at, at))
	}
	return dir
}

func mentions(t *testing.T, dir, text string) (found bool) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		found = found || bytes.Contains(data, []byte(text))
		return err
	}))
	return found
}

// The package's description of its Wasm is correct, and its source maps contain their sources.
func TestFilesOfThePackage(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(unpack(t, packed(t).tarball), "package")
	origin := read[struct {
		Wasm struct{ SHA256, Go string }
	}](t, filepath.Join(dir, "provenance.json"))
	wasm, err := os.ReadFile(filepath.Join(dir, "holdfast.wasm"))
	require.NoError(t, err)
	assert.Equal(t, sum(wasm), origin.Wasm.SHA256)
	assert.Equal(t, strings.TrimSpace(run(t, "../..", "go", "env", "GOVERSION")), origin.Wasm.Go)

	modules, err := filepath.Glob(filepath.Join(dir, "*.js"))
	require.NoError(t, err)
	require.NotEmpty(t, modules)
	for _, module := range modules {
		text, err := os.ReadFile(module)
		require.NoError(t, err)
		assert.Contains(t, string(text), "//# sourceMappingURL="+filepath.Base(module)+".map")
		sources := read[struct{ Sources, SourcesContent []string }](t, module+".map")
		require.NotEmpty(t, sources.Sources)
		assert.Len(t, sources.SourcesContent, len(sources.Sources))
	}
	for _, name := range []string{"LICENSE", "README.md", "THIRD_PARTY_LICENSES.txt", "holdfast.d.ts", "element.d.ts", "react.d.ts", "svelte.d.ts", "testing.d.ts", "vue.d.ts"} {
		assert.FileExists(t, filepath.Join(dir, name))
	}
}

func read[T any](t *testing.T, path string) (value T) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &value))
	return value
}

// unpack unpacks the tarball with the system's tar and returns the folder.
func unpack(t *testing.T, tarball string) string {
	t.Helper()
	dir := t.TempDir()
	run(t, dir, "tar", "xzf", tarball)
	return dir
}

// projectFiles returns the files of the Vite project that a user writes or commits.
func projectFiles(t *testing.T) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	for _, name := range []string{"package.json", "package-lock.json", "tsconfig.json", "index.html", "src/main.ts"} {
		data, err := os.ReadFile(filepath.Join("vite", name))
		require.NoError(t, err)
		files[name] = &fstest.MapFile{Data: data, Mode: 0o644}
	}
	return files
}
