package arch

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	module    = "github.com/holdfast-dev/holdfast"
	syscallJS = "syscall/js"
	safejs    = "github.com/hack-pad/safejs"
	etcd      = "go.etcd.io"
	etcdHome  = module + "/server/kv"
)

// pkg contains the fields of `go list` that the rules need.
type pkg struct {
	ImportPath   string
	Standard     bool
	Imports      []string
	TestImports  []string
	XTestImports []string
	Deps         []string
}

func (p pkg) allImports() []string {
	return slices.Concat(p.Imports, p.TestImports, p.XTestImports)
}

// mayImport lists the folders that the packages of a folder may import, besides their own. A folder here is a top-level folder of the module.
// ARCHITECTURE.md has the same table, see undrawn.
var mayImport = map[string][]string{
	"lock":     {"internal"},
	"autosave": {"lock", "internal"},
	"remote":   {"autosave", "lock", "internal"},
	"jsbridge": {"remote", "autosave", "lock"},
	"opfs":     {"jsbridge", "autosave", "lock", "internal"}, // jsbridge contains the promises
	"wasm":     {"opfs", "jsbridge", "remote", "autosave", "lock"},
	"server":   {"internal"},
	"client":   {"lock", "internal"},
	"internal": {},
	"web":      {},
	"cmd":      {"server", "client", "internal", "web"},
	"tests":    {"lock", "autosave", "remote", "jsbridge", "opfs", "server", "client", "internal", "web"},
}

// testsMayImport lists the folders that only the tests of a folder may import in addition: those of the client run against the
// server, and those of the server use the names of its interface that remote declares.
var testsMayImport = map[string][]string{"client": {"server"}, "server": {"remote"}}

var (
	pureFolders = []string{"lock", "autosave", "remote"} // compile and run without a browser
	jsFolders   = []string{"jsbridge", "opfs", "wasm"}   // may touch a JS value

	browserFolders = slices.Concat(pureFolders, jsFolders)
)

// undrawn finds the lines of mayImport that are no row of ARCHITECTURE.md.
func undrawn(architecture string) []string {
	var found []string
	for from, granted := range mayImport {
		to := "nothing"
		if len(granted) > 0 {
			to = "`" + strings.Join(granted, "`, `") + "`"
		}
		if row := fmt.Sprintf("| `%s` | %s |", from, to); !strings.Contains(architecture, "\n"+row+"\n") {
			found = append(found, "ARCHITECTURE.md has no row "+row)
		}
	}
	return found
}

// topFolder returns the first directory of a package of this module, or "".
func topFolder(importPath string) string {
	rest, ok := strings.CutPrefix(importPath, module+"/")
	if !ok {
		return ""
	}
	first, _, _ := strings.Cut(rest, "/")
	return first
}

// wrongArrows finds packages that import a folder that mayImport does not list for their own. Every folder has its line
// in that table.
func wrongArrows(pkgs []pkg) []string {
	var found []string
	for _, p := range pkgs {
		from := topFolder(p.ImportPath)
		if from == "" {
			continue
		}
		granted, known := mayImport[from]
		if !known {
			found = append(found, fmt.Sprintf("folder %s has no line in mayImport", from))
			continue
		}
		find := func(imports, granted []string) {
			for _, imported := range imports {
				to := topFolder(imported)
				if to != "" && to != from && !slices.Contains(granted, to) {
					found = append(found, fmt.Sprintf("%s imports %s", p.ImportPath, imported))
				}
			}
		}
		find(p.Imports, granted)
		find(slices.Concat(p.TestImports, p.XTestImports), slices.Concat(granted, testsMayImport[from]))
	}
	return found
}

// mayImportScript lists the folders that the scripts of a folder may import, besides their own: web → {opfs, jsbridge}.
var mayImportScript = map[string][]string{"web": {"opfs", "jsbridge"}, "opfs": {}, "jsbridge": {}}

var importedScript = regexp.MustCompile(`(?m)^\s*(?:import|export)\b[^"';]*["'](\.[^"']+)["']|\bimport\(["'](\.[^"']+)["']\)`)

// wrongScripts finds TypeScript and JavaScript files of the package that import a file of a folder that mayImportScript does not
// list for their own.
func wrongScripts(files []source) []string {
	var found []string
	for _, f := range files {
		from, _, _ := strings.Cut(f.path, "/")
		granted, known := mayImportScript[from]
		if ext := path.Ext(f.path); !known || ext != ".ts" && ext != ".js" {
			continue
		}
		for _, m := range importedScript.FindAllSubmatch(f.text, -1) {
			imported := path.Join(path.Dir(f.path), string(m[1])+string(m[2]))
			if to, _, _ := strings.Cut(imported, "/"); to != from && !slices.Contains(granted, to) {
				found = append(found, fmt.Sprintf("%s imports %s", f.path, imported))
			}
		}
	}
	return found
}

// strayJS finds packages of this module outside jsFolders that import syscall/js or safejs. Pure folders must not import
// them through another module either. (The standard library does import syscall/js under GOOS=js.)
func strayJS(pkgs []pkg) []string {
	importsJS := map[string]bool{safejs: true}
	for _, p := range pkgs {
		if !p.Standard && topFolder(p.ImportPath) == "" && slices.Contains(p.Imports, syscallJS) {
			importsJS[p.ImportPath] = true
		}
	}
	var found []string
	for _, p := range pkgs {
		in := topFolder(p.ImportPath)
		if in == "" {
			continue
		}
		for _, imported := range p.allImports() {
			touchesJS := imported == syscallJS || isWithin(imported, safejs)
			if touchesJS && !slices.Contains(jsFolders, in) {
				found = append(found, fmt.Sprintf("%s imports %s", p.ImportPath, imported))
			}
		}
		for _, dep := range p.Deps {
			if slices.Contains(pureFolders, in) && (importsJS[dep] || isWithin(dep, safejs)) {
				found = append(found, fmt.Sprintf("%s depends on %s", p.ImportPath, dep))
			}
		}
	}
	return found
}

// strayEtcd finds packages outside server/kv that import etcd, and packages of the browser that import it through
// another package.
func strayEtcd(pkgs []pkg) []string {
	var found []string
	for _, p := range pkgs {
		in := topFolder(p.ImportPath)
		if in == "" || isWithin(p.ImportPath, etcdHome) {
			continue
		}
		for _, imported := range p.allImports() {
			if isWithin(imported, etcd) {
				found = append(found, fmt.Sprintf("%s imports %s", p.ImportPath, imported))
			}
		}
		for _, dep := range p.Deps {
			if slices.Contains(browserFolders, in) && isWithin(dep, etcd) {
				found = append(found, fmt.Sprintf("%s depends on %s", p.ImportPath, dep))
			}
		}
	}
	return found
}

// tooHeavy finds packages that are too large for the Wasm binary: net/http (1.5 MB) and encoding/json (80 KB). The
// engine has both. No package of this module in the binary imports fmt or os: for the sake of other modules, the
// build replaces fmt by a minimal one (see web/build).
func tooHeavy(pkgs []pkg) []string {
	inside := map[string]bool{module + "/wasm": true}
	var found []string
	for _, p := range pkgs {
		if p.ImportPath != module+"/wasm" {
			continue
		}
		for _, dep := range p.Deps {
			inside[dep] = true
			if dep == "net/http" || dep == "encoding/json" {
				found = append(found, fmt.Sprintf("%s depends on %s", p.ImportPath, dep))
			}
		}
	}
	for _, p := range pkgs {
		for _, imported := range p.Imports {
			if inside[p.ImportPath] && topFolder(p.ImportPath) != "" && (imported == "fmt" || imported == "os") {
				found = append(found, fmt.Sprintf("%s imports %s", p.ImportPath, imported))
			}
		}
	}
	return found
}

func isWithin(importPath, parent string) bool {
	return importPath == parent || strings.HasPrefix(importPath, parent+"/")
}
