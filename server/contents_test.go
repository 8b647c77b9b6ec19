package server_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/kv"
)

// files are the blobs of a server, without the mark of the store.
func (i *instance) files(t testing.TB) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(i.blobs, "*", "*"))
	require.NoError(t, err)
	return slices.DeleteFunc(list, func(path string) bool { return strings.Contains(path, "00-home-") })
}

func generations(a answer) (list []string) {
	for _, g := range a.body["generations"].([]any) {
		list = append(list, g.(map[string]any)["generation"].(string))
	}
	return list
}

func TestGenerationsAreKept(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.Keep, c.Sweep = 3, 50*time.Millisecond })
	ann := s.as(t, "ann")
	token := ann.lock("r")
	for i := range 5 {
		require.Equal(t, http.StatusOK, ann.save("r", token, fmt.Sprint("text ", i)).status)
	}
	history := generations(ann.do("GET", "/api/documents/r/history", nil))
	require.Len(t, history, 3)
	for i, generation := range history {
		a := ann.do("GET", contentOf("r")+"?generation="+generation, nil)
		assert.Equal(t, fmt.Sprint("text ", 4-i), string(a.text))
		assert.Equal(t, generation, a.header.Get("Holdfast-Generation"))
	}
	for _, bad := range []string{"x", "..", history[0] + "0"} {
		assertError(t, ann.do("GET", contentOf("r")+"?generation="+bad, nil), http.StatusNotFound, "document_not_found")
	}
	require.Eventually(t, func() bool {
		left, err := s.Store().Keys(t.Context(), "garbage/")
		require.NoError(t, err)
		return len(left) == 0 && len(s.files(t)) == 3
	}, 10*time.Second, 10*time.Millisecond, "the blobs that no generation uses are deleted")
}

func TestADocumentIsDeleted(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.Sweep = 50 * time.Millisecond })
	ann, bob := s.as(t, "ann"), s.as(t, "bob")
	token := ann.lock("r")
	for i := range 3 {
		require.Equal(t, http.StatusOK, ann.save("r", token, fmt.Sprint(i)).status)
	}
	deleted := func(c client, token int64) answer {
		return c.with(remote.HeaderToken, strconv.FormatInt(token, 10)).do("DELETE", "/api/documents/r", nil)
	}
	assertError(t, deleted(bob, token), http.StatusForbidden, "not_locked_by_user")
	assertError(t, deleted(ann, token+1000), http.StatusConflict, "stale_token")
	assertError(t, ann.do("DELETE", "/api/documents/r", nil), http.StatusBadRequest, "invalid_request")
	require.Equal(t, http.StatusOK, deleted(ann, token).status)
	require.Equal(t, http.StatusOK, deleted(ann, token).status, "nothing is there any more")
	assertError(t, ann.do("GET", contentOf("r"), nil), http.StatusNotFound, "document_not_found")
	assertError(t, ann.do("GET", "/api/documents/r/history", nil), http.StatusNotFound, "document_not_found")
	require.Eventually(t, func() bool { return len(s.files(t)) == 0 }, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, http.StatusOK, ann.save("r", token, "anew").status)
	require.Equal(t, http.StatusOK, ann.do("DELETE", lockOf("r"), nil).status)
	for _, prefix := range []string{"blobs/", "content/"} {
		keys, err := s.Store().Keys(t.Context(), prefix)
		require.NoError(t, err)
		assert.Len(t, keys, 1)
	}
}

// conditions is a document that one user has saved.
type conditions struct {
	ann                client
	token              int64
	etag, past, future string
}

func (c conditions) read(name, value string) answer {
	return c.ann.with(name, value).do("GET", contentOf("r"), nil)
}

// The conditions and ranges of RFC 9110.
func TestConditionsOfContents(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	c := conditions{ann: ann, token: ann.lock("r"), past: at(-time.Hour), future: at(time.Hour)}
	c.etag = ann.save("r", c.token, "0123456789").body["etag"].(string)
	c.checkReads(t)
	c.checkRanges(t)
	c.checkWrites(t)

	for _, path := range s.files(t) {
		require.NoError(t, os.Remove(path))
	}
	assert.Equal(t, 200, ann.do("HEAD", contentOf("r"), nil).status, "the bytes are not read")
	assert.Equal(t, 304, c.read("If-None-Match", c.etag).status, "the bytes are not read")
	assertError(t, c.read("If-None-Match", ""), http.StatusInternalServerError, "internal_error")
}

func (c conditions) checkReads(t *testing.T) {
	t.Helper()
	for value, status := range map[string]int{
		c.etag: 304, "W/" + c.etag: 304, `"x", ` + c.etag: 304, `"a,b" ,W/"c",,` + c.etag: 304, "*": 304, `"x"`: 200, "": 200,
		`"x`: 200, "x, " + c.etag: 200,
	} {
		assert.Equal(t, status, c.read("If-None-Match", value).status, value)
	}
	for value, status := range map[string]int{
		c.etag: 200, "*": 200, `"x", ` + c.etag: 200, `W/"y", ` + c.etag: 200, `"x"`: 412, "W/" + c.etag: 412, `"` + c.etag: 412,
	} {
		assert.Equal(t, status, c.read("If-Match", value).status, value)
	}
	lines := c.ann.with("If-Match", `"x"`)
	lines.header.Add("If-Match", c.etag)
	assert.Equal(t, 200, lines.do("GET", contentOf("r"), nil).status, "two lines are one list")
	assert.Equal(t, 412, c.ann.with("If-Match", `"x"`).with("If-None-Match", c.etag).do("GET", contentOf("r"), nil).status)
	assert.Equal(t, 304, c.read("If-Modified-Since", c.future).status)
	assert.Equal(t, 200, c.read("If-Modified-Since", c.past).status)
	assert.Equal(t, 412, c.read("If-Unmodified-Since", c.past).status)
	assert.Equal(t, 200, c.ann.with("If-Match", c.etag).with("If-Unmodified-Since", c.past).do("GET", contentOf("r"), nil).status)
	assert.Equal(t, 200, c.ann.with("If-None-Match", `"x"`).with("If-Modified-Since", c.future).do("GET", contentOf("r"), nil).status)
}

func (c conditions) checkRanges(t *testing.T) {
	t.Helper()
	head := c.ann.do("HEAD", contentOf("r"), nil)
	assert.Equal(t, []string{"10", c.etag, "bytes"}, []string{head.header.Get("Content-Length"), head.header.Get("ETag"), head.header.Get("Accept-Ranges")})
	part := c.read("Range", "bytes=2-4")
	assert.Equal(t, 206, part.status)
	assert.Equal(t, "234", string(part.text))
	assert.Equal(t, "bytes 2-4/10", part.header.Get("Content-Range"))
	assert.Equal(t, "89", string(c.read("Range", "bytes=-2").text))
	outside := c.read("Range", "bytes=20-")
	assertError(t, outside, http.StatusRequestedRangeNotSatisfiable, "range_not_satisfiable")
	assert.Equal(t, []string{"bytes */10", ""}, []string{outside.header.Get("Content-Range"), outside.header.Get("ETag")})
	assert.Equal(t, 200, c.ann.with("Range", "bytes=2-4").with("If-Range", `"x"`).do("GET", contentOf("r"), nil).status)
	assert.Equal(t, 206, c.ann.with("Range", "bytes=2-4").with("If-Range", c.etag).do("GET", contentOf("r"), nil).status)
	assert.Equal(t, 206, c.ann.with("Range", "bytes=2-4").with("If-Match", c.etag).do("GET", contentOf("r"), nil).status)
	assert.Equal(t, 200, c.read("Range", "items=0-4").status, "a unit that the server does not know")
	several := c.read("Range", "bytes=0-1,5-6")
	assert.Equal(t, 206, several.status)
	assert.Contains(t, several.header.Get("Content-Type"), "multipart/byteranges")
}

func (c conditions) checkWrites(t *testing.T) {
	t.Helper()
	write := func(name, value string) answer { return c.ann.with(name, value).save("r", c.token, "0123456789") }
	assert.Equal(t, 200, write("If-Match", `"x", `+c.etag).status)
	assertError(t, write("If-Match", `"x"`), http.StatusPreconditionFailed, "precondition_failed")
	assert.Equal(t, 200, write("If-Match", "W/"+c.etag+", "+c.etag).status)
	assert.Equal(t, 412, write("If-Unmodified-Since", c.past).status)
	assert.Equal(t, 200, write("If-None-Match", `"x"`).status)
	assertError(t, write("If-Match", "W/"+c.etag), http.StatusPreconditionFailed, "precondition_failed")
	assertError(t, write("If-None-Match", "*"), http.StatusPreconditionFailed, "precondition_failed")
	other := c.ann.lock("other")
	assert.Equal(t, 412, c.ann.with("If-Match", "*").save("other", other, "x").status)
	assert.Equal(t, 200, c.ann.with("If-None-Match", "*").save("other", other, "x").status)

	deletion := c.ann.with(remote.HeaderToken, strconv.FormatInt(other, 10)).with("If-Match", `"x"`)
	assertError(t, deletion.do("DELETE", "/api/documents/other", nil), http.StatusPreconditionFailed, "precondition_failed")
}

func TestDocumentsAreListed(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	var want []string
	for i := range 25 {
		document := fmt.Sprintf("a%02d", i)
		want = append(want, document)
		token := ann.lock(document)
		require.Equal(t, http.StatusOK, ann.save(document, token, document).status)
		if i > 0 {
			require.Equal(t, http.StatusOK, ann.do("DELETE", lockOf(document), nil).status)
		}
	}
	b := ann.lock("b")
	require.Equal(t, http.StatusOK, ann.save("b", b, "x").status)
	var got []string
	for after := ""; ; {
		page := ann.do("GET", "/api/documents?prefix=a&limit=10&after="+after, nil)
		require.Equal(t, http.StatusOK, page.status)
		for _, d := range page.body["documents"].([]any) {
			d := d.(map[string]any)
			got = append(got, d["document"].(string))
			assert.Equal(t, d["document"], d["name"])
			assert.InDelta(t, 3, d["size"], 0)
			assert.Equal(t, d["document"] == "a00", d["is_locked"])
		}
		next, more := page.body["next"].(string)
		if !more {
			break
		}
		after = next
	}
	assert.Equal(t, want, got)
	assertError(t, ann.do("GET", "/api/documents?limit=0", nil), http.StatusBadRequest, "invalid_request")
	assertError(t, ann.do("GET", "/api/documents?prefix=a/b", nil), http.StatusBadRequest, "invalid_request")
}

// A content that a former version of the server has put into the store is read, and the next save moves it.
func TestContentsOfAFormerVersion(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	_, err := s.Store().Commit(t.Context(), kv.Txn{Then: []kv.Op{
		kv.Put("content/r", []byte(`{"etag":"\"x\"","token":1,"saved":1700000000000,"size":6,"save":"lk-AB","chunks":2}`)),
		kv.Put("chunks/r/lk-AB/000", []byte("for")), kv.Put("chunks/r/lk-AB/001", []byte("mer")),
	}})
	require.NoError(t, err)
	assert.Equal(t, "former", string(ann.do("GET", contentOf("r"), nil).text))
	token := ann.lock("r")
	require.Equal(t, http.StatusOK, ann.save("r", token, "now").status)
	assert.Equal(t, "now", string(ann.do("GET", contentOf("r"), nil).text))
	keys, err := s.Store().Keys(t.Context(), "chunks/")
	require.NoError(t, err)
	assert.Empty(t, keys)
}

// A client that resumes an upload, as curl -C does, sends the rest of a content, and some clients compress what they
// send. Neither replaces the content.
func TestBodyThatIsNotTheContentReplacesNothing(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	ann.status(http.StatusCreated, "PUT /dav/plan.docx text")
	require.Equal(t, http.StatusOK, ann.wopi("LOCK", "one", "", nil).status)
	token := ann.lock("r")
	require.Equal(t, http.StatusOK, ann.save("r", token, "hello world").status)
	for _, wrong := range []struct {
		name, value, code string
		status            int
	}{
		{"Content-Range", "bytes 6-10/11", "invalid_request", http.StatusBadRequest},
		{"Content-Encoding", "gzip", "unsupported_encoding", http.StatusUnsupportedMediaType},
	} {
		by := ann.with(wrong.name, wrong.value)
		assertError(t, by.save("r", token, "world"), wrong.status, wrong.code)
		assert.Equal(t, wrong.status, by.wopi("PUT", "one", "", "world").status)
		by.status(wrong.status, "PUT /dav/other world")
	}
	require.Equal(t, http.StatusOK, ann.with("Content-Encoding", "Identity").save("r", token, "hello world").status)
	assert.Equal(t, "hello world", string(ann.do("GET", contentOf("r"), nil).text))
	assert.Equal(t, "text", string(ann.do("GET", "/dav/plan.docx", nil).text))
}
