package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// entry is one TypeScript source that is compiled to one minified ES module with a source map.
type entry struct {
	source   string
	output   string
	external []string // imports that are not bundled
	inject   []string // modules whose exports replace free identifiers with the same names
	wrapped  bool     // the module exports one function, which runs the source with the globals of its argument
}

// entries are the modules of the npm package. The facade is small, and every page loads it. Code that only one host
// needs is in a module of its own.
var entries = []entry{
	{source: "web/src/holdfast.ts", output: "holdfast", external: []string{"./holdfast-host.js", "./holdfast-page.js", "./holdfast-autosave.js", "./holdfast-preview.js", "./holdfast-early.js", "./holdfast-serve.js"}},
	{source: "web/src/host.ts", output: "holdfast-host"},
	{source: "web/src/start-autosave.ts", output: "holdfast-autosave"},
	{source: "web/src/preview.ts", output: "holdfast-preview"},
	{source: "web/src/early.ts", output: "holdfast-early"},
	{source: "web/src/worker.ts", output: "holdfast-worker"},
	{source: "web/src/service/serve.ts", output: "holdfast-serve"},
	{source: "web/src/service/broker.ts", output: "holdfast-broker"},
	// In a page, timers slow down in the background, so Go's runtime uses those of a helper worker. The helper also
	// opens files.
	{source: "web/src/page.ts", output: "holdfast-page", inject: []string{"web/src/page-timers.ts"}},
	{source: "web/src/helper.ts", output: "holdfast-helper"},

	{source: "web/src/react.ts", output: "react", external: []string{"react", "./holdfast.js"}},
	{source: "web/src/vue.ts", output: "vue", external: []string{"vue", "./holdfast.js"}},
	{source: "web/src/element.ts", output: "element"},
	{source: "web/src/svelte.ts", output: "svelte", external: []string{"./holdfast.js"}},

	// For tests without a browser: each tab of a test runs the facade and the worker with globals of its own.
	{source: "web/src/testing/index.ts", output: "testing", external: []string{"node:*", "./testing-tab.js", "./testing-worker.js"}},
	{source: "web/src/testing/tab.ts", output: "testing-tab", wrapped: true},
	{source: "web/src/worker.ts", output: "testing-worker", wrapped: true},
	{source: "web/src/testing/page.ts", output: "testing-page"},
}

// demoEntries are the modules of the demo's pages.
var demoEntries = []entry{
	{source: "web/demo/editor.ts", output: "editor", external: []string{"./holdfast.js"}},
	{source: "web/demo/demo.ts", output: "demo", external: []string{"./holdfast.js"}},
	{source: "web/demo/inspect.ts", output: "inspect", external: []string{"./holdfast.js"}},
	{source: "web/demo/notes.ts", output: "notes", external: []string{"./holdfast.js", "./element.js"}},
	{source: "web/demo/room.ts", output: "room"},
}

func bundlePackage(o options, version string) error {
	goroot, err := goOutput("env", "GOROOT")
	if err != nil {
		return err
	}
	wasmExec := filepath.Join(goroot, "lib", "wasm", "wasm_exec.js")
	for _, e := range entries {
		if err := bundle(e, o.root, o.out, version, wasmExec); err != nil {
			return err
		}
	}
	return nil
}

// bundle writes e's module and source map into dir.
func bundle(e entry, root, dir, version, wasmExec string) error {
	inject := make([]string, len(e.inject))
	for i, path := range e.inject {
		inject[i] = filepath.Join(root, path)
	}
	o := api.BuildOptions{
		AbsWorkingDir: root,
		EntryPointsAdvanced: []api.EntryPoint{
			{InputPath: filepath.Join(root, e.source), OutputPath: e.output},
		},
		// Source maps name their sources relative to this directory. It is the same directory for every build, and
		// the files are moved to dir afterwards. So a build elsewhere gives the same bytes.
		Outdir:            filepath.Join(root, "dist"),
		Bundle:            true,
		Format:            api.FormatESModule,
		Platform:          api.PlatformBrowser,
		Target:            api.ES2022,
		MinifyWhitespace:  true,
		MinifyIdentifiers: true,
		MinifySyntax:      true,
		Sourcemap:         api.SourceMapLinked,
		External:          e.external,
		Inject:            inject,
		Define:            map[string]string{"__VERSION__": strconv.Quote(version), "__TIME_STANDS_STILL__": "false"},
		Plugins:           []api.Plugin{toolchain(wasmExec)},
		LogLevel:          api.LogLevelSilent, // the build returns the errors
	}
	if e.wrapped {
		wrap(&o)
	}
	result := api.Build(o)
	if len(result.Errors) > 0 || len(result.Warnings) > 0 {
		messages := append(format(api.ErrorMessage, result.Errors), format(api.WarningMessage, result.Warnings)...)
		return fmt.Errorf("bundle %s:\n%s", e.source, strings.Join(messages, ""))
	}
	var errs []error
	for _, file := range result.OutputFiles {
		contents := file.Contents
		if filepath.Ext(file.Path) == ".js" {
			contents = bytes.ReplaceAll(contents, []byte(unfollowed), []byte(ignored))
		}
		errs = append(errs, os.WriteFile(filepath.Join(dir, filepath.Base(file.Path)), contents, 0o644))
	}
	return errors.Join(errs...)
}

// A dynamic import whose address is known only in the page is written as a call of a function. Without the comment,
// webpack warns that it cannot follow the import, and esbuild removes comments. Both are of one length, so the source
// map stays true.
const (
	unfollowed = "importWithoutABundlerLooking("
	ignored    = "import(/*webpackIgnore:true*/"
)

func format(kind api.MessageKind, messages []api.Message) []string {
	return api.FormatMessages(messages, api.FormatMessagesOptions{Kind: kind})
}

// toolchain resolves `import "wasm_exec"` to the file of the Go toolchain that compiles the Wasm, because the two
// must match. An alias would write the toolchain's path into the source map.
func toolchain(wasmExec string) api.Plugin {
	return api.Plugin{
		Name: "toolchain",
		Setup: func(build api.PluginBuild) {
			build.OnResolve(api.OnResolveOptions{Filter: `^wasm_exec$`},
				func(api.OnResolveArgs) (api.OnResolveResult, error) {
					return api.OnResolveResult{Path: "lib/wasm/wasm_exec.js", Namespace: "go"}, nil
				})
			build.OnLoad(api.OnLoadOptions{Filter: `.*`, Namespace: "go"},
				func(api.OnLoadArgs) (api.OnLoadResult, error) {
					source, err := os.ReadFile(wasmExec)
					if err != nil {
						return api.OnLoadResult{}, err
					}
					contents := string(source)
					return api.OnLoadResult{Contents: &contents, Loader: api.LoaderJS}, nil
				})
		},
	}
}
