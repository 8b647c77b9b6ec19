package strangers

import (
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/static"
	"github.com/holdfast-dev/holdfast/tests/browser"
)

//go:embed testdata/*.js
var testdata embed.FS

const site = "../../web/site"

// harnesses are the scripts of the packages that run the tests.
var harnesses = map[string]string{"jasmine": "/node_modules/jasmine-core/lib/jasmine-core/jasmine.js", "mocha": "/node_modules/mocha/mocha.js"}

// mine returns one of the scripts in this folder.
func mine(name string) string {
	text, err := testdata.ReadFile("testdata/" + name)
	if err != nil {
		panic(err) // embedded, so it exists
	}
	return string(text)
}

func quoted(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // these are strings
	}
	return string(text)
}

func script(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
	_, _ = fmt.Fprint(w, text)
}

// serve serves the package, the sources of the suites and a page that runs one of them.
func serve(t *testing.T, l locks, s suite) *browser.Server {
	t.Helper()
	before := strings.ReplaceAll(mine("locks.js"), "OPENING", quoted(l))
	mux := http.NewServeMux()
	files, err := static.Handler(os.DirFS(site))
	require.NoError(t, err, "run make build")
	mux.Handle("/", files)
	own(t, mux, l)
	mux.Handle("/node_modules/", http.FileServer(http.Dir(*dir)))
	mux.HandleFunc("/wa-sqlite/{name...}", func(w http.ResponseWriter, r *http.Request) {
		name := path.Clean("/" + r.PathValue("name"))
		text, err := os.ReadFile(filepath.Join(*dir, "wa-sqlite", filepath.FromSlash(name)))
		switch {
		case err != nil:
			http.NotFound(w, r)
		case path.Ext(name) == ".wasm":
			w.Header().Set("Content-Type", "application/wasm")
			_, _ = w.Write(text)
		case name == "/test/test-worker.js":
			script(w, before+imports(text))
		default:
			script(w, imports(text))
		}
	})
	mux.HandleFunc("/broadcast-channel.js", func(w http.ResponseWriter, _ *http.Request) { script(w, elections(t)) })
	mux.HandleFunc("/lockfile.js", func(w http.ResponseWriter, _ *http.Request) { script(w, mine("lockfile.js")) })
	mux.HandleFunc("/lockfile-holder.js", func(w http.ResponseWriter, _ *http.Request) {
		// Messages that arrive while the module loads wait for its handler.
		script(w, "const heard = []; onmessage = (event) => heard.push(event);\n"+before+mine("lockfile-holder.js")+"heard.forEach((event) => onmessage(event));\n")
	})
	run := strings.NewReplacer("FILES", quoted(s.files), "GREP", quoted(s.grep)).Replace(mine(s.harness + ".js"))
	mux.HandleFunc("/suite", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, "<!doctype html><title>%s</title><link rel=icon href='data:,'><div id=mocha></div><script src=%s></script><script type=module>\n%s%s</script>",
			s.name, harnesses[s.harness], before, run)
	})
	return browser.Serve(t, mux)
}

// own serves the scripts of the package so that they see the browser's locks, or none, but not those of the suite.
func own(t *testing.T, mux *http.ServeMux, l locks) {
	t.Helper()
	const facade = "const navigator = globalThis.browsers ?? globalThis.navigator;\n"
	worker := ""
	if l.Alone {
		worker = "Object.defineProperty(navigator, 'locks', { configurable: true, value: undefined });\n"
	}
	for name, before := range map[string]string{"holdfast.js": facade, "holdfast-page.js": facade, "holdfast-worker.js": worker, "holdfast-helper.js": worker} {
		text, err := os.ReadFile(filepath.Join(site, name))
		require.NoError(t, err)
		mux.HandleFunc("/"+name, func(w http.ResponseWriter, _ *http.Request) { script(w, before+string(text)) })
	}
}

// imports replaces the imports of Comlink by a path that a browser finds.
func imports(text []byte) string {
	return strings.ReplaceAll(string(text), "'comlink'", "'/node_modules/comlink/dist/esm/comlink.mjs'")
}

// elections bundles the tests of broadcast-channel with its sources, without the parts for Node.js.
func elections(t *testing.T) string {
	t.Helper()
	sources := filepath.Join(*dir, "broadcast-channel")
	plugin := api.Plugin{Name: "sources", Setup: func(build api.PluginBuild) {
		build.OnResolve(api.OnResolveOptions{Filter: `^\.\./$`}, func(api.OnResolveArgs) (api.OnResolveResult, error) {
			return api.OnResolveResult{Path: filepath.Join(sources, "src/index.js")}, nil
		})
		build.OnLoad(api.OnLoadOptions{Filter: `method-chooser\.js$`}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
			text, err := os.ReadFile(args.Path)
			kept := ""
			for line := range strings.Lines(string(text)) {
				if !strings.Contains(line, "NodeMethod") {
					kept += line
				}
			}
			return api.OnLoadResult{Contents: &kept}, err
		})
	}}
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{filepath.Join(sources, "test/integration.test.js")}, Bundle: true, Format: api.FormatESModule, Platform: api.PlatformBrowser,
		Define: map[string]string{"global": "globalThis"}, NodePaths: []string{filepath.Join(*dir, "node_modules")}, Plugins: []api.Plugin{plugin},
	})
	require.Empty(t, result.Errors)
	return string(result.OutputFiles[0].Contents)
}
