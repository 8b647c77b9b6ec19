package main

import (
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// wrappedGlobals are the free identifiers of the package's sources that a test replaces.
const wrappedGlobals = "AbortController AbortSignal Blob BroadcastChannel CustomEvent DOMException Date Event EventTarget MessageChannel " +
	"IDBKeyRange Request TextDecoder TextEncoder URL WebAssembly WebSocket Worker addEventListener clearInterval clearTimeout console crypto document fetch indexedDB " +
	"localStorage location navigator performance queueMicrotask removeEventListener reportError self setInterval setTimeout SharedWorker structuredClone top"

// wrap makes the output a module whose default export is a function of an object of globals. It runs the source, with
// all modules that are otherwise loaded later, and returns the source's exports.
func wrap(o *api.BuildOptions) {
	o.Format = api.FormatIIFE
	o.GlobalName = "wrapped"
	o.Define["import.meta.url"] = `"https://holdfast.test/"`
	o.Define["Go"] = "globalThis.Go"           // wasm_exec.js defines it there
	o.Define["__TIME_STANDS_STILL__"] = "true" // until a test advances it
	o.Banner = map[string]string{"js": "export default function(globalThis){const{" + strings.ReplaceAll(wrappedGlobals, " ", ",") + "}=globalThis;"}
	o.Footer = map[string]string{"js": "return wrapped}"}
	o.Plugins = append(o.Plugins, siblings)
}

// siblings resolves the modules of the package that are loaded later to their sources.
var siblings = api.Plugin{
	Name: "siblings",
	Setup: func(build api.PluginBuild) {
		build.OnResolve(api.OnResolveOptions{Filter: `^\./holdfast-(autosave|early|host|page|preview|serve)\.js$`},
			func(args api.OnResolveArgs) (api.OnResolveResult, error) {
				name := strings.TrimSuffix(strings.TrimPrefix(args.Path, "./holdfast-"), ".js")
				if source, ok := map[string]string{"autosave": "start-autosave", "serve": "service/serve"}[name]; ok {
					name = source
				}
				return api.OnResolveResult{Path: filepath.Join(args.ResolveDir, name+".ts")}, nil
			})
	},
}
