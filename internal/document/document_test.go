package document

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestIDAndPathAreInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.StringMatching(`[a-z0-9._-]{1,8}`).Draw(t, "first")
		path := append([]string{first}, rapid.SliceOfN(rapid.StringN(1, 6, 12), 0, 5).Draw(t, "below")...)
		if id, ok := ID(path); ok {
			assert.Equal(t, path, Path(id))
			assert.True(t, IsID(id) || id == "." || id == "..", id)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.StringMatching(`[A-Za-z0-9._~-]{1,40}`).Draw(t, "id")
		spelled, ok := ID(Path(id))
		assert.True(t, ok)
		assert.Equal(t, id, spelled)
	})
}

func TestIsID(t *testing.T) {
	for _, id := range []string{"a", "A-Z.a_z~0-9", "...", strings.Repeat("x", MaxID)} {
		assert.True(t, IsID(id), id)
	}
	for _, id := range []string{"", ".", "..", "a/b", "a b", "é", "a%2Fb", strings.Repeat("x", MaxID+1)} {
		assert.False(t, IsID(id), id)
	}
}

// The longest path and the longest id are still right.
func TestLongestID(t *testing.T) {
	deep := strings.Split(strings.Repeat("a", MaxDepth), "")
	for _, path := range [][]string{deep, {strings.Repeat("x", MaxID)}, {"x", strings.Repeat("y", MaxID-1-len(Part))}} {
		id, ok := ID(path)
		assert.True(t, ok, path)
		assert.Equal(t, path, Path(id))
	}
	for _, path := range [][]string{append(deep, "a"), {strings.Repeat("x", MaxID+1)}, {"x", strings.Repeat("y", MaxID-len(Part))}} {
		_, ok := ID(path)
		assert.False(t, ok, path)
	}
}
