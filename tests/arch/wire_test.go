package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wire lists the values that cross between Go and the page. The Go functions that write a value are its source: every
// other declaration has the same fields.
var wire = []struct {
	value  string
	file   string   // of Go
	writes []string // the functions that write the value
	other  []end
}{
	{"lease", "wasm/encode_js.go", []string{"encodeLease"}, []end{
		{file: "web/holdfast.d.ts", begin: "export interface ProjectLockLease {", without: "signal"},
		{file: "web/src/lease.ts", begin: "export class Lease implements ProjectLockLease {", without: "signal"},
	}},
	{"event", "wasm/encode_js.go", []string{"encodeEvent"}, []end{
		{file: "web/holdfast.d.ts", begin: "interface EventBase {", and: "export type ProjectLockEvent = EventBase & ("},
	}},
	{"reason", "wasm/encode_js.go", []string{"reason"}, []end{
		{file: "web/src/protocol.ts", begin: "export interface Reason {"},
	}},
	{"holder", "jsbridge/channel_js.go", []string{"EncodeHolder", "place"}, []end{
		{file: "web/holdfast.d.ts", begin: "export interface HolderInfo {"},
	}},
	{"waiter", "jsbridge/channel_js.go", []string{"EncodeWaiter", "place"}, []end{
		{file: "web/holdfast.d.ts", begin: "export interface WaiterInfo {", without: "waitsFor"}, // encodeState adds it
	}},
	{"state of an AutoSave", "wasm/autosave_encode_js.go", []string{"encodeSaverState"}, []end{
		{file: "web/holdfast.d.ts", begin: "export interface AutoSaveState {", unsaid: "readOnly"},
	}},
	{"generation", "wasm/autosave_encode_js.go", []string{"encodeGeneration"}, []end{
		{file: "web/holdfast.d.ts", begin: "export interface Generation {"},
	}},
	{"draft", "wasm/drafts_js.go", []string{"encodeDraft"}, []end{
		{file: "web/holdfast.d.ts", begin: "export interface Draft {"},
	}},
}

// end is a declaration in TypeScript.
type end struct {
	file    string
	begin   string // the line that opens it
	and     string // the line that opens its second part, if there is one
	without string // a field that the page adds
	unsaid  string // a field that the page keeps for itself
}

func TestBothEndsOfTheWireHaveTheSameFields(t *testing.T) {
	for _, w := range wire {
		written := written(t, w.file, w.writes)
		for _, e := range w.other {
			declared := declared(t, read(t, e.file), e)
			if e.unsaid != "" {
				declared = slices.Sorted(slices.Values(append(declared, e.unsaid)))
			}
			assert.Equal(t, written, declared, "the fields of a %s in %s and in %s", w.value, w.file, e.file)
		}
	}
}

// options lists what a page tells Go. The Go function that reads a value knows every field that the page gives.
var options = []struct {
	function string   // of wasm/options
	own      []string // fields that the facade adds for Go
	end      end
	kept     []string // fields that the facade keeps, or replaces
}{
	{"Acquire", []string{"leaseId"}, end{file: "web/holdfast.d.ts", begin: "export interface AcquireOptions {"}, []string{"onReadonly", "signal", "within"}},
	{"With", nil, end{file: "web/holdfast.d.ts", begin: "export interface WithLockOptions extends AcquireOptions {"}, nil},
	{"backoff", nil, end{file: "web/holdfast.d.ts", begin: "export interface Backoff {"}, nil},
	{"Request", []string{"asked"}, end{file: "web/src/locks.ts", begin: "export interface LockRequest {"}, nil},
	{"AutoSave", []string{"dirty", "lineage", "shown"}, end{file: "web/holdfast.d.ts", begin: "export interface AutoSaveOptions {"}, []string{"journalMs", "merge", "signal"}},
}

func TestGoReadsEveryOptionThatAPageGives(t *testing.T) {
	for _, o := range options {
		got := namesIn(t, filepath.Join("..", "..", "wasm/options/locks.go"), []string{o.function}, readNames)
		given := append(declared(t, read(t, o.end.file), o.end), o.own...)
		given = slices.DeleteFunc(given, func(name string) bool { return slices.Contains(o.kept, name) })
		assert.ElementsMatch(t, given, got, "%s in wasm/options/locks.go, and %s", o.function, o.end.begin)
	}
}

// A field that one end gains, loses or renames is found.
func TestWireFindsDifferences(t *testing.T) {
	e := end{begin: "export interface Thing {", without: "mine"}
	assert.Equal(t, []string{"at", "id", "path"}, declared(t, `
export interface Other { id: string }
export interface Thing {
  readonly id: string; at?: number; // note: not a field
  /** note: not a field */
  path: { inner: string }[];
  mine: boolean;
  call(argument: string): void;
  [Symbol.iterator](): void;
}`, e))
	file := filepath.Join(t.TempDir(), "a.go")
	require.NoError(t, os.WriteFile(file, []byte(`package a
func thing() { o.Text("id", other("no")); o.Add("path", Texts("no")); o.Whole("at", 1); other.Text("no", "no") }
func others() { o.Text("other", 1) }`), 0o600))
	assert.Equal(t, []string{"at", "id", "path"}, namesIn(t, file, []string{"thing"}, writtenNames))
	require.NoError(t, os.WriteFile(file, []byte(`package a
func thing() { use(r.Text("id"), r.Inner("path"), r.Number("at", zero("no"))); r.Fault("no", "is wrong"); other.Text("no") }`), 0o600))
	assert.Equal(t, []string{"at", "id", "path"}, namesIn(t, file, []string{"thing"}, readNames))
}

func read(t *testing.T, file string) string {
	text, err := os.ReadFile(filepath.Join("..", "..", file))
	require.NoError(t, err)
	return string(text)
}

func written(t *testing.T, file string, functions []string) []string {
	return namesIn(t, filepath.Join("..", "..", file), functions, writtenNames)
}

// namesIn returns the names of the fields that functions use.
func namesIn(t *testing.T, file string, functions []string, namesOf func(ast.Node) []string) []string {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	names, found := map[string]bool{}, 0
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || !slices.Contains(functions, f.Name.Name) {
			continue
		}
		found++
		ast.Inspect(f, func(n ast.Node) bool {
			for _, name := range namesOf(n) {
				names[name] = true
			}
			return true
		})
	}
	require.Len(t, functions, found, "a function of %v is missing in %s", functions, file)
	return slices.Sorted(maps.Keys(names))
}

// writtenNames returns the name of the field that one node of the syntax tree writes, by a method of a jsbridge.Object.
func writtenNames(n ast.Node) []string { return firstArgument(n, "o") }

// readNames returns the name of the field that one node of the syntax tree reads, by a method of options.Reader.
func readNames(n ast.Node) []string { return firstArgument(n, "r", "inner") }

// firstArgument returns the text with which a method of one of the variables is called.
func firstArgument(n ast.Node, variables ...string) []string {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return nil
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || method.Sel.Name == "Fault" {
		return nil
	}
	if of, ok := method.X.(*ast.Ident); !ok || !slices.Contains(variables, of.Name) {
		return nil
	}
	return literal(call.Args[0])
}

// literal returns the text of a literal, if the expression is one.
func literal(e ast.Expr) []string {
	text, ok := e.(*ast.BasicLit)
	if !ok || text.Kind != token.STRING {
		return nil
	}
	name, _ := strconv.Unquote(text.Value) // the parser has accepted it
	return []string{name}
}

var (
	comments = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	field    = regexp.MustCompile(`^\s*(?:declare )?(?:readonly )?(\w+)\??:`)
)

// declared returns the names of the fields of a declaration, without its methods.
func declared(t *testing.T, text string, e end) []string {
	names := map[string]bool{}
	for _, begin := range []string{e.begin, e.and} {
		_, body, ok := strings.Cut(text, begin)
		require.True(t, ok, "%q is missing", begin)
		if begin == "" {
			continue
		}
		for _, one := range members(comments.ReplaceAllString(body, "")) {
			if m := field.FindStringSubmatch(one); m != nil && m[1] != e.without {
				names[m[1]] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// members divides the body of a declaration into its members, up to the bracket that ends it. A union has the members
// of all its objects.
func members(body string) (list []string) {
	depth, union := 0, strings.HasPrefix(strings.TrimSpace(body), "|")
	one := ""
	for _, c := range body {
		switch {
		case strings.ContainsRune("{([", c):
			if depth++; union && depth == 1 && c == '{' {
				one = ""
				continue
			}
		case strings.ContainsRune("})]", c):
			if depth--; depth < 0 {
				return append(list, one)
			}
			if union && depth == 0 || depth == 0 && strings.Contains(one, "(") {
				list, one = append(list, one), ""
				continue
			}
		case c == ';' && (depth == 0 || union && depth == 1):
			list, one = append(list, one), ""
			continue
		}
		one += string(c)
	}
	return append(list, one)
}

// The structs of httpapi are the source of the fields in requests: a client sends no other field. The server ignores
// fields that it does not know, so no test of a request finds a name that is wrong on one side.
func TestServerReadsEveryFieldThatClientsSend(t *testing.T) {
	known := named(t, "server/httpapi", regexp.MustCompile("json:\"(\\w+)"))
	sent := named(t, "remote", regexp.MustCompile(`fields\["(\w+)"\]|any\{"(\w+)":`))
	assert.Subset(t, known, sent)
	assert.Greater(t, len(sent), 8, "the regular expression no longer finds the fields")
}

// named returns what the groups of an expression match in the sources of a package.
func named(t *testing.T, dir string, e *regexp.Regexp) []string {
	names := map[string]bool{}
	for _, file := range sourcesOf(t, dir) {
		for _, m := range e.FindAllStringSubmatch(read(t, file), -1) {
			for _, name := range m[1:] {
				if name != "" {
					names[name] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// sourcesOf returns the Go sources of a package without its tests.
func sourcesOf(t *testing.T, dir string) (files []string) {
	found, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
	require.NoError(t, err)
	for _, file := range found {
		if !strings.HasSuffix(file, "_test.go") {
			files = append(files, dir+"/"+filepath.Base(file))
		}
	}
	return files
}
