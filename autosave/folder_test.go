package autosave_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/autosave"
)

func TestFolderOfADocument(t *testing.T) {
	for _, c := range []struct {
		path []string
		want string
	}{
		{nil, ""},
		{[]string{}, ""},
		{[]string{"book"}, "documents/=book"},
		{[]string{"book", "chapter 1"}, "documents/=book+chapter~201"},
		{[]string{"Book"}, "documents/=~42ook"},
		{[]string{"a/b"}, "documents/=a~2fb"},
		{[]string{"a+b"}, "documents/=a~2bb"},
		{[]string{"."}, "documents/=~2e"},
		{[]string{"é"}, "documents/=~c3~a9"},
		{[]string{strings.Repeat("x", 201)}, "documents/=" + strings.Repeat("x", 200) + "/=x"},
	} {
		assert.Equal(t, c.want, autosave.Folder(c.path), "%q", c.path)
	}
}

// Every folder has a name that each file system admits, and paths that differ never share one, whatever their length.
func FuzzFoldersDiffer(f *testing.F) {
	f.Add("a", "b", "a/b", "")
	f.Add("A", "", "a", "")
	f.Add("e\u0301", "", "\u00e9", "")
	f.Add(strings.Repeat("ä", 512), "", strings.Repeat("ä", 512)+"x", "")
	f.Add("a", "autosave", "a", "=autosave")
	part := regexp.MustCompile(`^(documents|=[a-z0-9_+~-]{1,200})$`)
	f.Fuzz(func(t *testing.T, a1, a2, b1, b2 string) {
		path := func(components ...string) (p []string) {
			for _, c := range components {
				if c != "" {
					p = append(p, c)
				}
			}
			return p
		}
		a, b := path(a1, a2), path(b1, b2)
		assert.Equal(t, strings.Join(a, "\x00") == strings.Join(b, "\x00") && len(a) == len(b), autosave.Folder(a) == autosave.Folder(b))
		for _, name := range strings.Split(autosave.Folder(a), "/") {
			if len(a) > 0 {
				assert.Regexp(t, part, name)
			}
		}
	})
}
