package consumer

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The declarations of the package are right for TypeScript 5.2, the first version that knows "await using", to 7.
func TestVersionsOfTypeScript(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("types")))
	write(t, filepath.Join(dir, "package.json"), `{"private": true, "type": "module"}`)
	versions := []string{"5.2.2", "5.5.4", "5.9.3", "6.0.3", "7.0.2"}
	install := []string{"install", "--no-progress", "--no-audit", "--no-fund", packed(t).tarball}
	for _, version := range versions {
		install = append(install, "typescript-"+version+"@npm:typescript@"+version)
	}
	run(t, dir, "npm", install...)
	for _, version := range versions {
		for _, resolution := range []string{"Bundler", "NodeNext"} {
			module := map[string]string{"Bundler": "ESNext", "NodeNext": "NodeNext"}[resolution]
			t.Run(version+", "+resolution, func(t *testing.T) {
				run(t, dir, "node", "node_modules/typescript-"+version+"/bin/tsc", "--module", module, "--moduleResolution", resolution)
			})
		}
	}
}
