package main

import (
	"fmt"
	"net/http"
	"os"
	"path"
	"strings"
	"testing/fstest"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/holdfast-dev/holdfast/internal/static"
)

// packages are published packages with a Wasm, by the name of the script that starts one. A page with one of them can
// change a text in memory; it has no lock, and stores nothing.
var packages = map[string]struct{ name, wasm string }{
	"sqlite":    {"sqlite-wasm, in memory", "@sqlite.org/sqlite-wasm/dist/sqlite3.wasm"},
	"automerge": {"automerge, in memory", "@automerge/automerge/dist/automerge.wasm"},
	"loro":      {"loro, in memory", "loro-crdt/web/loro_wasm_bg.wasm"},
}

// packaged serves the packages as an application ships them: a minified script, and the Wasm beside it.
func packaged() (http.Handler, error) {
	files := fstest.MapFS{"index.html": {}}
	for kind, p := range packages {
		wasm, err := os.ReadFile("tests/bench/node_modules/" + p.wasm)
		if err != nil {
			return nil, fmt.Errorf("%w; run npm ci in tests/bench", err)
		}
		result := api.Build(api.BuildOptions{
			EntryPoints:       []string{"tests/bench/packages/" + kind + ".js"},
			Bundle:            true,
			Format:            api.FormatESModule,
			Target:            api.ES2022,
			MinifyWhitespace:  true,
			MinifyIdentifiers: true,
			MinifySyntax:      true,
			LogLevel:          api.LogLevelSilent,
		})
		if len(result.Errors) > 0 {
			text := api.FormatMessages(result.Errors, api.FormatMessagesOptions{Kind: api.ErrorMessage})
			return nil, fmt.Errorf("bundle %s:\n%s", kind, strings.Join(text, ""))
		}
		files[kind+".js"] = &fstest.MapFile{Data: result.OutputFiles[0].Contents}
		files[path.Base(p.wasm)] = &fstest.MapFile{Data: wasm}
	}
	return static.Handler(files)
}
