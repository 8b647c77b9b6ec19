package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	comments "go/doc/comment"
	"go/format"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const module = "github.com/holdfast-dev/holdfast"

// published are the packages that programs of others may import.
var published = []string{"lock", "lock/locktest", "autosave", "autosave/autosavetest", "client"}

// documented makes the page of the Go packages.
func documented(root string) (string, error) {
	var page strings.Builder
	fmt.Fprintf(&page, note, "the comments of the packages")
	page.WriteString("# Reference of the Go packages\n")
	for _, name := range published {
		if err := writeGoPackage(&page, root, name); err != nil {
			return "", fmt.Errorf("package %s: %w", name, err)
		}
	}
	return page.String(), nil
}

// goPage writes what go/doc has found.
type goPage struct {
	*strings.Builder
	pkg *doc.Package
	set *token.FileSet
}

func writeGoPackage(page *strings.Builder, root, name string) error {
	dir := filepath.Join(root, filepath.FromSlash(name))
	files, err := build.Default.ImportDir(dir, 0)
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	var parsed []*ast.File
	for _, file := range slices.Concat(files.GoFiles, files.TestGoFiles, files.XTestGoFiles) {
		f, err := parser.ParseFile(set, filepath.Join(dir, file), nil, parser.ParseComments)
		if err != nil {
			return err
		}
		parsed = append(parsed, f)
	}
	pkg, err := doc.NewFromFiles(set, parsed, module+"/"+name)
	if err != nil {
		return err
	}
	p := goPage{page, pkg, set}
	fmt.Fprintf(p, "\n## %s\n\n`import %q`\n\n%s", name, pkg.ImportPath, p.markdown(pkg.Doc))
	p.examples(pkg.Examples)
	p.values("Constants", pkg.Consts)
	p.values("Variables", pkg.Vars)
	for _, f := range pkg.Funcs {
		p.function("### func "+f.Name, f)
	}
	for _, t := range pkg.Types {
		p.typed(t)
	}
	return nil
}

// nameLink is a link to something of a package by its name.
var nameLink = regexp.MustCompile(`\[([^\]]+)\]\([#/][^)]*\)`)

// markdown turns a comment into Markdown. Names link to nowhere: the same ones occur in several packages.
func (p goPage) markdown(comment string) string {
	printer := p.pkg.Printer()
	printer.HeadingLevel = 4
	printer.HeadingID = func(*comments.Heading) string { return "" }
	return string(nameLink.ReplaceAll(printer.Markdown(p.pkg.Parser().Parse(comment)), []byte("$1")))
}

func (p goPage) typed(t *doc.Type) {
	fmt.Fprintf(p, "\n### type %s\n\n", t.Name)
	p.code(t.Decl)
	p.WriteString(p.markdown(t.Doc))
	p.values("", t.Consts)
	p.values("", t.Vars)
	p.examples(t.Examples)
	for _, f := range t.Funcs {
		p.function("#### func "+f.Name, f)
	}
	for _, f := range t.Methods {
		p.function(fmt.Sprintf("#### func (%s) %s", f.Recv, f.Name), f)
	}
}

func (p goPage) function(heading string, f *doc.Func) {
	fmt.Fprintf(p, "\n%s\n\n", heading)
	p.code(f.Decl)
	p.WriteString(p.markdown(f.Doc))
	p.examples(f.Examples)
}

func (p goPage) values(heading string, values []*doc.Value) {
	if heading != "" && len(values) > 0 {
		fmt.Fprintf(p, "\n### %s\n\n", heading)
	}
	for _, v := range values {
		p.code(v.Decl)
		p.WriteString(p.markdown(v.Doc))
	}
}

func (p goPage) examples(examples []*doc.Example) {
	for _, e := range examples {
		p.WriteString("\nExample:\n\n")
		p.code(&printer.CommentedNode{Node: e.Code, Comments: e.Comments})
	}
}

// code writes a piece of source as gofmt would.
func (p goPage) code(node any) {
	var source bytes.Buffer
	if err := format.Node(&source, p.set, node); err != nil {
		fmt.Fprintf(&source, "// %v", err) // seen in the page
	}
	text := source.String()
	if body, ok := strings.CutPrefix(text, "{\n"); ok { // that of an example
		text = strings.ReplaceAll("\n"+strings.TrimRight(body, "}\n\t "), "\n\t", "\n")[1:]
	}
	fmt.Fprintf(p, "```go\n%s\n```\n\n", text)
}
