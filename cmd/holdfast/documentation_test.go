package main

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var writesDocumentation = flag.Bool("write-documentation", false, "write the help of the commands into docs/commands.md")

// The page of commands has the help of each one, word for word. The flags of serve have a page of their own.
func TestDocumentationHasTheHelp(t *testing.T) {
	const path, begin, end = "../../docs/commands.md", "<!-- help -->\n", "<!-- end of help -->\n"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	var help strings.Builder
	for _, c := range commands() {
		if c.name == "serve" {
			continue
		}
		help.WriteString("## holdfast " + c.name + "\n\n```text\n")
		var page strings.Builder
		flags, _ := c.flags(&page)
		flags.Usage()
		help.WriteString(page.String() + "```\n\n")
	}
	want := before + begin + help.String() + end + after
	if *writesDocumentation {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	assert.Equal(t, want, string(text), "run go test -run TestDocumentation ./cmd/holdfast -write-documentation")
}
