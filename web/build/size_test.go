package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// These are the limits that the package promises. They are repeated here, because changing one is a decision.
func TestBudgets(t *testing.T) {
	assert.Equal(t, []budget{
		{File: "holdfast.js", Encoding: "gzip", Limit: 8192},
		{File: "holdfast-host.js", Encoding: "gzip", Limit: 2624},
		{File: "holdfast-autosave.js", Encoding: "gzip", Limit: 8192},
		{File: "holdfast-preview.js", Encoding: "gzip", Limit: 3072},
		{File: "holdfast-early.js", Encoding: "gzip", Limit: 3072},
		{File: "holdfast-serve.js", Encoding: "gzip", Limit: 6144},
		{File: "holdfast-broker.js", Encoding: "gzip", Limit: 1024},
		{File: "holdfast.wasm", Encoding: "brotli", Limit: 778240},
	}, budgets)
}

func TestABudgetIsKeptUpToItsLastByte(t *testing.T) {
	kept := []size{
		{File: "holdfast.js", Raw: 99_999, Gzip: 8192, Brotli: 99_999},
		{File: "holdfast-host.js", Raw: 99_999, Gzip: 2048, Brotli: 99_999},
		{File: "holdfast-autosave.js", Raw: 99_999, Gzip: 8192, Brotli: 99_999},
		{File: "holdfast-preview.js", Raw: 99_999, Gzip: 3072, Brotli: 99_999},
		{File: "holdfast-early.js", Raw: 99_999, Gzip: 3072, Brotli: 99_999},
		{File: "holdfast-serve.js", Raw: 99_999, Gzip: 6144, Brotli: 99_999},
		{File: "holdfast-broker.js", Raw: 99_999, Gzip: 1024, Brotli: 99_999},
		{File: "holdfast.wasm", Raw: 9_999_999, Gzip: 9_999_999, Brotli: 778240},
	}
	assert.Empty(t, exceeded(kept, budgets))

	heavy := []size{{File: "holdfast.js", Gzip: 8193}, {File: "holdfast-host.js", Gzip: 2048}, {File: "holdfast-autosave.js", Gzip: 8192}, {File: "holdfast-preview.js", Gzip: 3072}, {File: "holdfast-early.js", Gzip: 3072},
		{File: "holdfast-serve.js", Gzip: 6144}, {File: "holdfast-broker.js", Gzip: 1024}, {File: "holdfast.wasm", Brotli: 778241}}
	errs := exceeded(heavy, budgets)
	require.Len(t, errs, 2)
	assert.EqualError(t, errs[0], "holdfast.js is 8193 bytes with gzip: 1 over its budget of 8192")
	assert.EqualError(t, errs[1], "holdfast.wasm is 778241 bytes with brotli: 1 over its budget of 778240")
}

func TestMissingFilesExceedTheBudget(t *testing.T) {
	assert.Len(t, exceeded(nil, budgets), len(budgets))
}

func TestMeasuringIsCachedByContent(t *testing.T) {
	dir := t.TempDir()
	cache := filepath.Join(dir, "cache", "sizes.json")
	path := filepath.Join(dir, "holdfast.js")
	write := func(path, data string) { require.NoError(t, os.WriteFile(path, []byte(data), 0o644)) }
	measured := func() size {
		t.Helper()
		sizes, err := measureAll(dir, cache)
		require.NoError(t, err)
		require.Len(t, sizes, 1)
		return sizes[0]
	}

	write(path, string(bytes.Repeat([]byte("lock"), 1000)))
	first := measured()
	assert.Equal(t, "holdfast.js", first.File)
	assert.Equal(t, 4000, first.Raw)
	assert.Less(t, first.Gzip, 100)
	assert.Less(t, first.Brotli, first.Gzip)

	// The cached size of these bytes is used …
	data, err := os.ReadFile(cache)
	require.NoError(t, err)
	write(cache, string(bytes.Replace(data, []byte(`"Raw": 4000`), []byte(`"Raw": 7`), 1)))
	assert.Equal(t, 7, measured().Raw)

	// … but not for others, and a broken cache is ignored.
	write(path, "lock")
	assert.Equal(t, 4, measured().Raw)
	write(cache, "{")
	assert.Equal(t, 4, measured().Raw)
}
