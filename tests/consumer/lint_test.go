package consumer

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Publint and are-the-types-wrong find nothing in the package, its entries included. They exit with an error if they do.
func TestLintersOfPackages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("lint")))
	run(t, dir, "npm", "ci", "--no-progress", "--no-audit", "--no-fund")
	bin, err := filepath.EvalSymlinks(filepath.Join(dir, "node_modules", ".bin"))
	require.NoError(t, err)
	t.Log(run(t, dir, filepath.Join(bin, "publint"), "run", "--strict", packed(t).tarball))
	t.Log(run(t, dir, filepath.Join(bin, "attw"), "--profile", "esm-only", packed(t).tarball))
}
