package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// source is one file of the repository. Its path is relative and has slashes.
type source struct {
	path string
	text []byte
}

// wasmFolders are the folders whose code runs in the browser.
var wasmFolders = []string{"lock", "autosave", "remote", "jsbridge", "opfs", "wasm"}

const maxLines = 400

// declaration may have any length: a page's editor reads it as one file, and it consists mostly of comments.
const declaration = "web/holdfast.d.ts"

// tooLong finds Go, TypeScript and CSS sources with more than maxLines lines, except the declaration file.
func tooLong(files []source) []string {
	var found []string
	for _, f := range files {
		if !slices.Contains([]string{".go", ".ts", ".css"}, path.Ext(f.path)) || f.path == declaration {
			continue
		}
		lines := bytes.Count(f.text, []byte("\n"))
		if len(f.text) > 0 && !bytes.HasSuffix(f.text, []byte("\n")) {
			lines++
		}
		if lines > maxLines {
			found = append(found, fmt.Sprintf("%s has %d lines, more than %d", f.path, lines, maxLines))
		}
	}
	return found
}

const maxFunctionLines = 50

// longFunctions finds functions with more than maxFunctionLines lines between their first line and their last one.
func longFunctions(p parsed) []string {
	var found []string
	for _, decl := range p.file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		first, last := p.set.Position(f.Pos()).Line, p.set.Position(f.End()).Line
		if lines := last - first - 1; lines > maxFunctionLines {
			found = append(found, fmt.Sprintf("%s:%d: %s has %d lines, more than %d", p.path, first, f.Name.Name, lines, maxFunctionLines))
		}
	}
	return found
}

// numbersOrDates matches calls of functions whose stand-ins in the Wasm give rough answers or fail.
var numbersOrDates = regexp.MustCompile(`\bstrconv\.(?:Append|Format|Parse)(?:Float|Complex)\(|\.(?:Append)?Format\(|\btime\.Parse`)

// unbuilt finds code of the Wasm that calls functions that its build replaces; see web/build/standins.
func unbuilt(files []source) []string {
	var found []string
	for _, f := range files {
		top, _, _ := strings.Cut(f.path, "/")
		if !slices.Contains(wasmFolders, top) || path.Ext(f.path) != ".go" || strings.HasSuffix(f.path, "_test.go") {
			continue
		}
		if m := numbersOrDates.Find(f.text); m != nil {
			found = append(found, fmt.Sprintf("%s calls %s, which the Wasm does not have", f.path, m))
		}
	}
	return found
}

// Both patterns are built from pieces, so that this file does not contain what it forbids.
var (
	machinePath  = regexp.MustCompile(`(?:^|[\s"'` + "`" + `(=:,])(/(?:wo` + `rk|ro` + `ot|ho` + `me|Us` + `ers)/\w[^\s"']*)`)
	registryHost = regexp.MustCompile(`(?i)\b(?:[\w-]+\.)*(?:np` + `mjs\.(?:org|com)|yarn` + `pkg\.com|npm` + `mirror\.com|` +
		`proxy\.go` + `lang\.org|sum\.go` + `lang\.org|gop` + `roxy\.\w+|artif` + `actory[\w.-]*)\b`)
	resolvedURL = regexp.MustCompile(`"resolved":\s*"[^"]*"`)
)

// machineNames finds files that name a path on somebody's machine or the host of a package registry. A lock file must
// not contain any download address.
func machineNames(files []source) []string {
	var found []string
	report := func(f source, match []byte) {
		line := 1 + bytes.Count(f.text[:bytes.Index(f.text, match)], []byte("\n"))
		found = append(found, fmt.Sprintf("%s:%d names %s", f.path, line, match))
	}
	for _, f := range files {
		if bytes.IndexByte(f.text, 0) >= 0 {
			continue // a binary file such as a picture
		}
		if m := machinePath.FindSubmatch(f.text); m != nil {
			report(f, m[1])
		}
		if m := registryHost.Find(f.text); m != nil {
			report(f, m)
		}
		if path.Base(f.path) == "package-lock.json" {
			if m := resolvedURL.Find(f.text); m != nil {
				report(f, m)
			}
		}
	}
	return found
}

// parsed is a Go source in the form that the rules need.
type parsed struct {
	source
	file *ast.File
	set  *token.FileSet
}

func parse(f source) (parsed, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, f.path, f.text, parser.ParseComments|parser.SkipObjectResolution)
	return parsed{f, file, set}, err
}

// jsNames returns the names under which the file imports syscall/js and safejs.
func (p parsed) jsNames() []string {
	var names []string
	for _, spec := range p.file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil || imported != syscallJS && !isWithin(imported, safejs) {
			continue
		}
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names = append(names, name)
	}
	return names
}

// straysFuncOf finds files outside jsbridge that mention js.FuncOf or safejs.FuncOf. Inside jsbridge every js.Func
// has a scope that releases it.
func straysFuncOf(p parsed) []string {
	if strings.HasPrefix(p.path, "jsbridge/") {
		return nil
	}
	var found []string
	names := p.jsNames()
	if slices.Contains(names, ".") {
		found = append(found, p.path+" imports a JS package with a dot, which hides FuncOf")
	}
	ast.Inspect(p.file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok || selector.Sel.Name != "FuncOf" {
			return true
		}
		if x, ok := selector.X.(*ast.Ident); ok && slices.Contains(names, x.Name) {
			at := p.set.Position(selector.Pos())
			found = append(found, fmt.Sprintf("%s:%d uses %s.FuncOf", p.path, at.Line, x.Name))
		}
		return true
	})
	return found
}

// unmarkedJS checks files that import syscall/js or safejs, or whose name says so. Their names must end in _js.go (or
// _js_test.go), and they must have the constraint //go:build js && wasm, or a stricter one.
func unmarkedJS(p parsed) []string {
	base := strings.TrimSuffix(strings.TrimSuffix(p.path, ".go"), "_test")
	named := strings.HasSuffix(base, "_js")
	if len(p.jsNames()) == 0 && !named {
		return nil
	}
	var found []string
	if !named {
		found = append(found, p.path+" is a js file, but its name does not end in _js.go")
	}
	if !demandsJSAndWasm(p.file) {
		found = append(found, p.path+" is a js file, but does not bear //go:build js && wasm")
	}
	return found
}

func demandsJSAndWasm(file *ast.File) bool {
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if comment.Pos() > file.Package || !constraint.IsGoBuild(comment.Text) {
				continue
			}
			expr, err := constraint.Parse(comment.Text)
			if err != nil {
				return false
			}
			// A constraint may contain other tags too, so both cases are tried: all of them set, and none.
			holds := func(others bool, missing string) bool {
				return expr.Eval(func(tag string) bool {
					return tag != missing && (others || tag == "js" || tag == "wasm")
				})
			}
			possible := holds(true, "") || holds(false, "")
			loose := holds(true, "js") || holds(true, "wasm") || holds(false, "js") || holds(false, "wasm")
			return possible && !loose
		}
	}
	return false
}
