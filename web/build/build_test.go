package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFoldersOfABuild(t *testing.T) {
	root := t.TempDir()
	other := t.TempDir()
	dist, site := filepath.Join(root, "dist"), filepath.Join(root, "web/site")

	o, err := parse(root, nil)
	require.NoError(t, err)
	assert.Equal(t, options{root: root, out: dist, site: site}, o)
	assert.False(t, o.variant())

	o, err = parse(root, []string{"-tags", "faults", "-out", other})
	require.NoError(t, err)
	assert.Equal(t, options{root: root, out: other, tags: "faults"}, o)
	assert.True(t, o.variant())
}

func TestATestBuildNeverBecomesThePackage(t *testing.T) {
	root := t.TempDir()
	for _, args := range [][]string{
		{"-tags", "faults"},
		{"-tags", "faults", "-out", filepath.Join(root, "dist")},
		{"-tags", "faults", "-out", t.TempDir(), "-site", filepath.Join(root, "web", "site")},
	} {
		_, err := parse(root, args)
		assert.Error(t, err, args)
	}
}

func TestADebugBuildIsNotPacked(t *testing.T) {
	root := t.TempDir()
	o, err := parse(root, []string{"-debug"})
	require.NoError(t, err)
	assert.True(t, o.debug)
	assert.Equal(t, filepath.Join(root, "dist"), o.out)
	_, err = parse(root, []string{"-debug", "-pack", t.TempDir()})
	assert.Error(t, err)
}

func TestVersion(t *testing.T) {
	root := t.TempDir()
	_, err := readVersion(root)
	assert.ErrorIs(t, err, os.ErrNotExist)

	require.NoError(t, os.Mkdir(filepath.Join(root, "web"), 0o755))
	path := filepath.Join(root, "web", "package.json")
	require.NoError(t, os.WriteFile(path, []byte(`{}`), 0o644))
	_, err = readVersion(root)
	assert.ErrorContains(t, err, "names no version")

	require.NoError(t, os.WriteFile(path, []byte(`{"version": "1.2.3"}`), 0o644))
	version, err := readVersion(root)
	require.NoError(t, err)
	assert.Equal(t, "1.2.3", version)
}

// Two clones in different places give the same bytes, including source maps.
func TestABundleDoesNotDependOnWhereItIsBuilt(t *testing.T) {
	build := func(root, dir string) map[string]string {
		src := filepath.Join(root, "web", "src")
		require.NoError(t, os.MkdirAll(src, 0o755))
		write := func(path, text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o644)) }
		write(filepath.Join(src, "page.ts"), `import "wasm_exec"; setTimeout(() => console.log(__VERSION__), 1);`)
		write(filepath.Join(src, "page-timers.ts"), `export const setTimeout = () => "a timer of our own";`)
		wasmExec := filepath.Join(root, "wasm_exec.js")
		write(wasmExec, `globalThis.Go = "the toolchain's";`)
		e := entry{source: "web/src/page.ts", output: "holdfast-page", inject: []string{"web/src/page-timers.ts"}}
		require.NoError(t, bundle(e, root, dir, "1.2.3", wasmExec))
		files := map[string]string{}
		for _, name := range []string{"holdfast-page.js", "holdfast-page.js.map"} {
			data, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			assert.NotContains(t, string(data), root)
			files[name] = string(data)
		}
		return files
	}
	first := build(t.TempDir(), t.TempDir())
	assert.Equal(t, first, build(t.TempDir(), t.TempDir()))

	js := first["holdfast-page.js"]
	assert.Contains(t, js, "a timer of our own", "page timers are injected")
	assert.NotContains(t, js, "setTimeout")
	assert.Contains(t, js, "the toolchain's")
	assert.Contains(t, js, `"1.2.3"`)
}

func TestABrokenSourceIsAnError(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "a.ts"), []byte("let = ;"), 0o644))
	err := bundle(entry{source: "a.ts", output: "a"}, root, t.TempDir(), "1", "")
	assert.ErrorContains(t, err, "a.ts:1:")
}

func TestEveryLinkedModuleHasItsLicenceInThePackage(t *testing.T) {
	root, err := moduleRoot()
	require.NoError(t, err)
	modules, err := linkedModules(options{root: root})
	require.NoError(t, err)
	var names []string
	for _, m := range modules {
		names = append(names, m.Path)
		_, err := licence(m.dir)
		assert.NoError(t, err, m.Path)
	}
	assert.Contains(t, strings.Join(names, "\n"), "github.com/hack-pad/safejs")
	_, err = licence(t.TempDir())
	assert.Error(t, err)
}

// Bundlers do not look at the import() of a file below baseURL, and its comment moves nothing that the source map names.
func TestBundlersIgnoreUnknownImports(t *testing.T) {
	assert.Len(t, ignored, len(unfollowed))
	root, err := moduleRoot()
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, bundle(entries[0], root, dir, "1.0.0", ""))
	script, err := os.ReadFile(filepath.Join(dir, "holdfast.js"))
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(string(script), ignored))
	assert.NotContains(t, string(script), unfollowed)
}
