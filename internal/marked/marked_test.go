package marked

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReplaceKeepsTheRestOfTheDocument(t *testing.T) {
	path := filepath.Join(t.TempDir(), "document.md")
	require.NoError(t, os.WriteFile(path, []byte("before\n<!-- a -->\n\nold\n<!-- end of a -->\nafter\n"), 0o600))
	for range 2 { // the second time nothing changes
		require.NoError(t, Replace(path, "<!-- a -->", "<!-- end of a -->", "\nnew\n"))
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, "before\n<!-- a -->\n\nnew\n<!-- end of a -->\nafter\n", string(text))
	}
}

func TestReplaceFailsWithoutTheMarks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "document.md")
	assert.Error(t, Replace(path, "<!-- a -->", "<!-- end of a -->", "new"), "there is no file")
	for _, text := range []string{"", "<!-- a -->", "<!-- end of a -->", "<!-- end of a --><!-- a -->"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		assert.Error(t, Replace(path, "<!-- a -->", "<!-- end of a -->", "new"), text)
		now, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, text, string(now))
	}
}
