package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// manifest is the published package.json. Its fields are in the order of npm's own tools.
type manifest struct {
	Name        string         `json:"name"`
	Version     string         `json:"version"`
	Description string         `json:"description"`
	Keywords    []string       `json:"keywords"`
	License     string         `json:"license"`
	Type        string         `json:"type"`
	Main        string         `json:"main"`
	Types       string         `json:"types"`
	Exports     map[string]any `json:"exports"`
	Files       []string       `json:"files"`
	SideEffects []string       `json:"sideEffects"`

	PeerDependencies     map[string]string       `json:"peerDependencies"`
	PeerDependenciesMeta map[string]optionalPeer `json:"peerDependenciesMeta"`

	Repository repository `json:"repository"`
}

// frameworks are the entries for frameworks, with the supported versions.
var frameworks = map[string]string{"react": ">=18", "svelte": ">=4", "vue": ">=3.3"}

// optionalPeer marks a package that only users of one entry install.
type optionalPeer struct {
	Optional bool `json:"optional"`
}

// declared returns the entries with declarations, besides the main entry.
func declared() []string {
	return append(slices.Sorted(maps.Keys(frameworks)), "element", "testing", "testing-page")
}

// undeclared returns the modules that no program imports, because bundlers only request their URLs. Each has a
// declaration that says so. Otherwise tools would report a missing one.
func undeclared() []string {
	names := []string{"holdfast.wasm"}
	for _, e := range entries {
		if e.output != "holdfast" && !slices.Contains(declared(), e.output) {
			names = append(names, e.output)
		}
	}
	return names
}

type repository struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

// exported returns the files that can be imported individually, so that a bundler's user can get the URL of each.
func exported() []string {
	names := []string{"holdfast.wasm", provenanceFile, "package.json"}
	for _, e := range entries {
		names = append(names, e.output+".js")
	}
	return names
}

// published returns the files that the manifest names. npm adds those of always.
func published() []string {
	names := []string{"holdfast.d.ts", "holdfast.wasm", noticesFile, provenanceFile}
	for _, name := range declared() {
		names = append(names, name+".d.ts")
	}
	for _, e := range entries {
		names = append(names, e.output+".js", e.output+".js.map")
	}
	for _, name := range undeclared() {
		names = append(names, name+".d.ts")
	}
	slices.Sort(names)
	return names
}

// always are the files of every npm package, in the order in which npm reads them.
var always = []string{"package.json", "LICENSE", "README.md"}

// packedFiles returns all files of the tarball.
func packedFiles() []string { return slices.Concat(always, published()) }

func newManifest(version string) manifest {
	exports := map[string]any{
		// TypeScript uses the first matching condition: types come first (the keys are sorted).
		".": conditions{Types: "./holdfast.d.ts", Default: "./holdfast.js"},
	}
	for _, name := range exported() {
		exports["./"+name] = "./" + name
	}
	optional := map[string]optionalPeer{}
	for _, name := range declared() {
		exports["./"+name] = conditions{Types: "./" + name + ".d.ts", Default: "./" + name + ".js"}
	}
	exports["./holdfast.wasm"] = conditions{Types: "./holdfast.wasm.d.ts", Default: "./holdfast.wasm"}
	for name := range frameworks {
		optional[name] = optionalPeer{Optional: true}
	}
	return manifest{
		Name:        "holdfast",
		Version:     version,
		Description: "A lock runtime for web editors: may this page write?",
		Keywords:    []string{"lock", "web-locks", "lease", "tabs", "autosave", "wasm"},
		License:     "MIT",
		Type:        "module",
		Main:        "./holdfast.js",
		Types:       "./holdfast.d.ts",
		Exports:     exports,
		Files:       published(),
		SideEffects: []string{"./element.js", "./testing-page.js"}, // which define an element and a global

		PeerDependencies:     frameworks,
		PeerDependenciesMeta: optional,

		Repository: repository{Type: "git", URL: "git+https://github.com/holdfast-dev/holdfast.git"},
	}
}

type conditions struct {
	Types   string `json:"types"`
	Default string `json:"default"`
}

// writePackage adds the files that are not compiled: the declarations, the texts and the manifest.
func writePackage(o options, version string) error {
	if err := copyFile(filepath.Join(o.root, "web", "holdfast.d.ts"), o.out); err != nil {
		return err
	}
	for _, name := range declared() {
		if err := copyFile(filepath.Join(o.root, "web", name+".d.ts"), o.out); err != nil {
			return err
		}
	}
	for _, name := range undeclared() {
		if err := os.WriteFile(filepath.Join(o.out, name+".d.ts"), []byte("export {};\n"), 0o644); err != nil {
			return err
		}
	}
	if err := copyFile(filepath.Join(o.root, "LICENSE"), o.out); err != nil {
		return err
	}
	if err := writeNotices(o); err != nil {
		return err
	}
	if err := writeProvenance(o, version); err != nil {
		return err
	}
	if err := copyFile(filepath.Join(o.root, "README.md"), o.out); err != nil {
		return err
	}
	data, err := json.MarshalIndent(newManifest(version), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.out, "package.json"), append(data, '\n'), 0o644)
}

// readVersion returns the common version of the package, the Wasm and the facade.
func readVersion(root string) (string, error) {
	path := filepath.Join(root, "web", "package.json")
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var pkg struct{ Version string }
	if err := json.Unmarshal(data, &pkg); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if pkg.Version == "" {
		return "", fmt.Errorf("%s names no version", path)
	}
	return pkg.Version, nil
}

// copyFile copies the file at path into dir and keeps its name.
func copyFile(path, dir string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, filepath.Base(path)), data, 0o644)
}
