package autosave

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSealOfAnyFile(t *testing.T) {
	sum := strings.Repeat("0123456789abcdef", 4)
	for _, content := range []string{"", "text", "\nholdfast 000000 0000000000000000 " + sum + "\n",
		"\nholdfast -00012 0000000000000000 " + sum + "\n", strings.Repeat("x", 1000)} {
		for _, note := range append([]string{"", strings.Repeat("n", 2000)}, nasty...) {
			seal := Seal(int64(len(content)), sum, note)
			file := slices.Concat([]byte(content), seal)
			got, gotSum, gotNote, ok := sealed(file)
			require.True(t, ok)
			assert.Equal(t, []string{content, sum, note}, []string{string(got), gotSum, gotNote})
			for n := range len(file) {
				if cut, _, _, ok := sealed(file[:n]); ok {
					// A content that ends with a seal looks whole when it is cut off there; its checksum shows that.
					assert.Equal(t, len(content), n, "cut off at %d: %q", n, cut)
				}
			}
			for n := len(file) - sealLength; n < len(file); n++ {
				damaged := slices.Clone(file)
				damaged[n] ^= 1
				_, damagedSum, _, ok := sealed(damaged)
				assert.True(t, !ok || damagedSum != sum, "byte %d", n-len(file))
			}
			_, _, _, ok = sealed(append(file, 0))
			assert.False(t, ok)
		}
	}
}

func TestNoteReadsBack(t *testing.T) {
	for i, g := range some(12) {
		blank := begun(mustPair(g.ID), g.Token)
		noted, aside := decodeNote(blank, encodeNote(g, i%2 == 0))
		want := g
		want.Bytes, want.SHA256, want.Current, want.Name = 0, "", false, ""
		assert.Equal(t, want, noted)
		assert.Equal(t, i%2 == 0, aside)
	}
	g := some(2)[1]
	blank := begun(mustPair(g.ID), g.Token)
	note := encodeNote(g, true)
	for n := range len(note) {
		damaged := []byte(note)
		damaged[n] ^= 1
		noted, aside := decodeNote(blank, string(damaged))
		assert.Equal(t, blank, noted, "byte %d", n)
		assert.False(t, aside)
		noted, _ = decodeNote(blank, note[:n])
		assert.Equal(t, blank, noted)
	}
}

func mustPair(id string) int64 {
	made, _, _ := parsePair(id)
	return made
}
