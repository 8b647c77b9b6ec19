package consumer

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/httpapi"
	"github.com/holdfast-dev/holdfast/tests/serving"
)

// A TypeScript client is generated from the server's description. Its types accept a program and refuse mistakes, and the program works.
func TestClientFromTheDescription(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("openapi")))
	run(t, dir, "npm", "ci", "--no-progress", "--no-audit", "--no-fund")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "openapi.json"), httpapi.Description, 0o644))
	bin, err := filepath.EvalSymlinks(filepath.Join(dir, "node_modules", ".bin"))
	require.NoError(t, err)
	run(t, dir, filepath.Join(bin, "openapi-typescript"), "openapi.json", "--output", "holdfast.d.ts")
	run(t, dir, filepath.Join(bin, "tsc"), "--project", ".")
	s := serving.Run(t, "--data-dir", t.TempDir())
	said := run(t, dir, "node", "out/program.js", "http://"+s.Address())
	assert.JSONEq(t, `{"text": "typed", "holder": "TypeScript", "code": "document_not_found", "denied": "already_locked"}`, said)
}
