package docs

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBlocksOfAPage(t *testing.T) {
	blocks, err := blocksOf("a.md", "Text\n\n```js\na();\n```\n<!-- check: calls.length -->\n\n1. Then\n\n   ```sh\n   make\n   ```\n\n   ````text\n   ```\n   ````\n")
	require.NoError(t, err)
	assert.Equal(t, []block{
		{page: "a.md", line: 4, lang: "js", text: "a();\n", check: "calls.length"},
		{page: "a.md", line: 11, lang: "sh", text: "make\n"},
		{page: "a.md", line: 15, lang: "text", text: "```\n"},
	}, blocks)

	_, err = blocksOf("a.md", "```js\na();\n")
	assert.ErrorContains(t, err, "not closed")
}

// Every block is either run or in a language that is not code.
func TestEveryBlockHasALanguage(t *testing.T) {
	blocks, err := allBlocks("../..")
	require.NoError(t, err)
	run := []string{"js", "go", "sh"}
	for _, b := range blocks {
		assert.Contains(t, slices.Concat(run, exempt), b.lang, b.name())
	}
}
