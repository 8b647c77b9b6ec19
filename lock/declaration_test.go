package lock_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

// declarations is the public interface in JavaScript; it contains the same words as this package.
const declarations = "../web/holdfast.d.ts"

var (
	quoted   = regexp.MustCompile(`"([^"]+)"`)
	codeLine = regexp.MustCompile(`(?m)^\s*\|\s*"([^"]+)";?\s*//\s*(acquire|renew|release|call|any operation), (retryable|final)\b`)
	eventTag = regexp.MustCompile(`\{\s*(?:readonly )?type: "(lock:[^"]+)"`)
	comment  = regexp.MustCompile(`//.*|(?s:/\*.*?\*/)`)
)

// union returns the source of the type, comments included.
func union(t *testing.T, name string) string {
	t.Helper()
	source, err := os.ReadFile(declarations)
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(source), "export type "+name+" =")
	require.True(t, ok, "%s is not declared", name)
	if end := strings.Index(rest, "\nexport "); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

// members returns the strings of a union of strings, up to its semicolon.
func members(t *testing.T, name string) (words []string) {
	t.Helper()
	source, _, ok := strings.Cut(comment.ReplaceAllString(union(t, name), ""), ";")
	require.True(t, ok)
	for _, m := range quoted.FindAllStringSubmatch(source, -1) {
		words = append(words, m[1])
	}
	return words
}

func TestCodesMatchDeclarations(t *testing.T) {
	var declared, known []string
	for _, m := range codeLine.FindAllStringSubmatch(union(t, "LockErrorCode"), -1) {
		declared = append(declared, strings.Join(m[1:], ", "))
	}
	for _, c := range lock.Codes() {
		op, fate := string(c.Operation), "final"
		if op == "" {
			op = "any operation"
		}
		if c.Retryable {
			fate = "retryable"
		}
		known = append(known, strings.Join([]string{string(c.Code), op, fate}, ", "))
	}
	assert.Equal(t, declared, known)
	assert.Len(t, members(t, "LockErrorCode"), len(known), "every code says where it arises and whether it is final")
}

func TestWordsMatchDeclarations(t *testing.T) {
	events := []string{}
	for _, m := range eventTag.FindAllStringSubmatch(union(t, "ProjectLockEvent"), -1) {
		events = append(events, m[1])
	}
	for kind, declared := range map[string][]string{
		"EventType":      events,
		"Code":           members(t, "LockErrorCode"),
		"Warning":        members(t, "Warning"),
		"ReadonlyReason": members(t, "ReadonlyReason"),
		"Operation":      members(t, "Operation"),
		"Strategy":       members(t, "Strategy"),
		"Mode":           members(t, "LockMode"),
	} {
		assert.Equal(t, declared, constants(t, kind), kind)
	}
}

// constants returns the values of all constants of a string type of this package, in the order of the source. A value
// that is missing in a list is found too.
func constants(t *testing.T, kind string) (values []string) {
	t.Helper()
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if id, ok := spec.Type.(*ast.Ident); ok && id.Name == kind {
				for _, v := range spec.Values {
					if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
						s, err := strconv.Unquote(lit.Value)
						require.NoError(t, err)
						values = append(values, s)
					}
				}
			}
			return true
		})
	}
	return values
}

func TestEveryCodeHasATarget(t *testing.T) {
	targets := []*lock.Error{lock.ErrWebLockUnsupported, lock.ErrDenied, lock.ErrTimeout, lock.ErrFallbackConflict,
		lock.ErrStale, lock.ErrRenewFailed, lock.ErrReleaseFailed, lock.ErrNotAllowed, lock.ErrCallLost, lock.ErrLoadFailed, lock.ErrLost, lock.ErrDeadlock, lock.ErrReentrant,
		lock.ErrAborted, lock.ErrUnsupported, lock.ErrInvalidArgument, lock.ErrCrashed}
	require.Len(t, targets, len(lock.Codes()))
	for i, c := range lock.Codes() {
		err := &lock.Error{Code: c.Code, Operation: lock.OpAcquire, Resource: "r", Detail: "d"}
		for j, target := range targets {
			assert.Equal(t, i == j, err.Is(target), "%s against %s", c.Code, target.Code)
		}
		assert.Equal(t, c.Retryable, err.Retryable())
	}
}
