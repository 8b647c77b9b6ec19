package locks

import "testing"

// Every accepted cursor is one that a page returns as Next.
func FuzzCursor(f *testing.F) {
	for _, text := range []string{"", "h1", "w1.x", "w0.", "h-1", "w1", "h1.x", "ü", "h+1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := parseCursor(text); err == nil && text != "" && c.String() != text {
			t.Fatalf("%q is read as %q", text, c)
		}
	})
}
