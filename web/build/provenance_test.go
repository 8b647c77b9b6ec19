package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCommit(t *testing.T) {
	root := t.TempDir()
	id, dirty := commit(root)
	assert.Empty(t, id, "no clone")
	assert.False(t, dirty)

	run := func(args ...string) string {
		t.Helper()
		out, err := git(root, append([]string{"-c", "user.name=Ann", "-c", "user.email=ann@example.org"}, args...)...)
		require.NoError(t, err)
		return out
	}
	source := filepath.Join(root, "a.go")
	require.NoError(t, os.WriteFile(source, []byte("package a\n"), 0o644))
	run("init", "--quiet")
	run("add", ".")
	run("commit", "--quiet", "-m", "first")

	id, dirty = commit(root)
	assert.Equal(t, run("rev-parse", "HEAD"), id)
	assert.False(t, dirty)

	inside := filepath.Join(root, "vendored")
	require.NoError(t, os.Mkdir(inside, 0o755))
	other, _ := commit(inside)
	assert.Empty(t, other, "a copy inside another repository has no commit of its own")

	require.NoError(t, os.WriteFile(source, []byte("package b\n"), 0o644))
	same, dirty := commit(root)
	assert.Equal(t, id, same)
	assert.True(t, dirty)
}

func TestModulePath(t *testing.T) {
	root, err := moduleRoot()
	require.NoError(t, err)
	path, err := modulePath(root)
	require.NoError(t, err)
	assert.Equal(t, "github.com/holdfast-dev/holdfast", path)
}
