package docs

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLinesOfCode(t *testing.T) {
	for code, lines := range map[string]int{
		"// a.js\n\na();\n": 1,
		"/**\n * Says a.\n */\na(); // now\n\n  // b\nb()": 2,
		"<!-- A.vue -->\n<script>\n</script>\n":            2,
		"open(\"https://example.org\");\n":                 1,
	} {
		assert.Equal(t, lines, linesOf(code), code)
	}
}

// A textarea that saves itself takes fewer than ten lines in each framework. The table in docs/performance.md is that of
// the pages as they are.
func TestRecipesAreCounted(t *testing.T) {
	recipes, err := Recipes("../..")
	require.NoError(t, err)
	table, err := os.ReadFile("../../docs/performance.md")
	require.NoError(t, err)
	lines := map[string]int{}
	for _, r := range recipes {
		lines[r.Name] = r.Lines
		row := fmt.Sprintf("| lines of code | %s | %d lines |", r.Name, r.Lines)
		assert.True(t, strings.Contains(string(table), row), "docs/performance.md lacks %q: run go run ./tests/bench -only recipes -update docs", row)
	}
	for _, name := range []string{"Notes.jsx", "Notes.vue", "Notes.svelte", "Field.svelte"} {
		assert.Contains(t, lines, name)
		assert.Less(t, lines[name], 10, name)
	}
	for _, name := range []string{"textarea.js", "codemirror.js", "monaco.js", "tiptap.js", "lexical.js", "excalidraw.js", "yjs.js"} {
		assert.Contains(t, lines, name)
	}
}
