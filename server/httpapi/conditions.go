package httpapi

import (
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/server/content"
)

// tags are the entity tags of an If-Match or If-None-Match header (RFC 9110, section 8.8.3), or any tag.
type tags struct {
	any  bool
	list []string
}

// readTags reads all lines of a header. Text that does not follow the grammar ends the list: it matches nothing.
func readTags(lines []string) (t tags) {
	text := strings.TrimSpace(strings.Join(lines, ","))
	if text == "*" {
		return tags{any: true}
	}
	for {
		text = strings.TrimLeft(text, " \t,")
		rest := strings.TrimPrefix(text, "W/")
		if !strings.HasPrefix(rest, `"`) {
			return t
		}
		end := strings.IndexByte(rest[1:], '"')
		if end < 0 {
			return t
		}
		tag := text[:len(text)-len(rest)+end+2]
		t.list = append(t.list, tag)
		text = text[len(tag):]
	}
}

// strong reports whether one of the tags equals tag by strong comparison: a weak tag never does.
func (t tags) strong(tag string) bool {
	for _, item := range t.list {
		if item == tag && !strings.HasPrefix(item, "W/") {
			return true
		}
	}
	return t.any && tag != ""
}

// weak reports whether one of the tags equals tag by weak comparison.
func (t tags) weak(tag string) bool {
	for _, item := range t.list {
		if strings.TrimPrefix(item, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return t.any && tag != ""
}

// conditions are the preconditions of a request, in the order of RFC 9110, section 13.2.2.
type conditions struct{ header http.Header }

// satisfied reports whether the present content meets the conditions. Info is zero if there is no content.
func (c conditions) satisfied(now content.Info) bool {
	if lines := c.header.Values("If-Match"); len(lines) > 0 {
		return readTags(lines).strong(now.ETag)
	}
	since, ok := c.date("If-Unmodified-Since")
	return !ok || now.ETag == "" || !now.SavedAt.Truncate(time.Second).After(since)
}

// fresh reports whether the client already has the content.
func (c conditions) fresh(now content.Info) bool {
	if lines := c.header.Values("If-None-Match"); len(lines) > 0 {
		return readTags(lines).weak(now.ETag)
	}
	since, ok := c.date("If-Modified-Since")
	return ok && now.ETag != "" && !now.SavedAt.Truncate(time.Second).After(since)
}

func (c conditions) date(name string) (time.Time, bool) {
	t, err := http.ParseTime(c.header.Get(name))
	return t, err == nil
}

// expected returns the condition of a write on the present content; nil if there is none.
func expected(r *http.Request) content.Expected {
	c := conditions{r.Header}
	none := r.Header.Values("If-None-Match")
	if len(none) == 0 && len(r.Header.Values("If-Match")) == 0 && r.Header.Get("If-Unmodified-Since") == "" {
		return nil
	}
	return func(before content.Info) error {
		if !c.satisfied(before) || len(none) > 0 && c.fresh(before) {
			return content.ErrPrecondition
		}
		return nil
	}
}

// unconditional returns the request without the conditions that have been evaluated; ranges stay. A date in If-Range never
// holds, because two contents of one second have the same (RFC 9110, section 13.1.5).
func unconditional(r *http.Request) *http.Request {
	plain := *r
	plain.Header = r.Header.Clone()
	for _, name := range []string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"} {
		plain.Header.Del(name)
	}
	if text := r.Header.Get("If-Range"); text != "" && !strings.HasSuffix(text, `"`) {
		plain.Header.Del("Range")
	}
	return &plain
}
