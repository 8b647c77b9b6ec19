package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCarriedSiteIsPacked(t *testing.T) {
	site, dir := t.TempDir(), filepath.Join(t.TempDir(), "packed")
	text := bytes.Repeat([]byte("export {};"), 1000)
	write := func(path string, data []byte) { require.NoError(t, os.WriteFile(path, data, 0o644)) }
	write(filepath.Join(site, "holdfast.js"), text)
	write(filepath.Join(site, "tiny.d.ts"), []byte("export {};\n"))
	write(filepath.Join(site, ".keep"), nil)
	require.NoError(t, packSite(site, dir))
	write(filepath.Join(dir, ".keep"), nil)
	write(filepath.Join(dir, "former.js.gz"), text)
	require.NoError(t, packSite(site, dir))

	names := func() (names []string) {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	assert.Equal(t, []string{".keep", "holdfast.js.gz", "tiny.d.ts"}, names())

	packed, err := os.ReadFile(filepath.Join(dir, "holdfast.js.gz"))
	require.NoError(t, err)
	z, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	unpacked, err := io.ReadAll(z)
	require.NoError(t, err)
	assert.Equal(t, text, unpacked)

	require.NoError(t, packSite(site, dir))
	again, err := os.ReadFile(filepath.Join(dir, "holdfast.js.gz"))
	require.NoError(t, err)
	assert.Equal(t, packed, again, "the same site gives the same bytes")
}
