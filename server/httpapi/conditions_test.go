package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/server/content"
)

// Reading a list of tags always ends, and a single tag is found.
func FuzzTags(f *testing.F) {
	for _, text := range []string{"", "*", `"a"`, `W/"a", "b"`, `"a,b"`, `"`, "W/", `"a"W/"b`, "\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read := readTags([]string{text})
		for _, tag := range read.list {
			if !strings.Contains(text, tag) || !strings.HasSuffix(tag, `"`) {
				t.Fatalf("%q is no tag of %q", tag, text)
			}
			if again := readTags([]string{tag}); len(again.list) != 1 || again.list[0] != tag {
				t.Fatalf("%q reads as %q", tag, again.list)
			}
		}
		_ = conditions{http.Header{"If-Match": {text}}}
	})
}

// A header without a tag is a condition that never holds, and so does not allow a write of any content.
func TestAnEmptyIfMatchNeverHolds(t *testing.T) {
	for _, lines := range [][]string{{""}, {"", `"other"`}} {
		condition := expected(&http.Request{Header: http.Header{"If-Match": lines}})
		if condition == nil || condition(content.Info{ETag: `"now"`}) == nil {
			t.Errorf("If-Match %q allows a write", lines)
		}
	}
}

// A content has changed twice within the second of its Last-Modified. The date does not show that it is still the same one.
func TestIfRangeWithADateGetsTheWholeContent(t *testing.T) {
	saved := time.Now()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Range", "bytes=2-")
	r.Header.Set("If-Range", saved.UTC().Format(http.TimeFormat))
	w := httptest.NewRecorder()
	if err := serveRange(w, r, saved, strings.NewReader("text")); err != nil {
		t.Fatal(err)
	}
	if w.Code != http.StatusOK || w.Body.String() != "text" {
		t.Error(w.Code, w.Body)
	}
}
