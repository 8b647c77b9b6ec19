package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/kv"
)

// texts returns the kept generations of a document, newest first.
func (c client) texts(document string) (list []string) {
	c.t.Helper()
	history := c.do("GET", "/api/documents/"+document+"/history", nil)
	if !assert.Equal(c.t, http.StatusOK, history.status, document) {
		return nil
	}
	for _, generation := range generations(history) {
		a := c.do("GET", contentOf(document)+"?generation="+generation, nil)
		require.Equal(c.t, http.StatusOK, a.status, string(a.text))
		list = append(list, string(a.text))
	}
	return list
}

// A document keeps its generations, its time, its properties and its maker under the new name, and nothing stays under the old one.
func TestAMovedDocumentKeepsItsHistory(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.MaxDocuments = 2 })
	ann := s.as(t, "ann")
	ann.status(http.StatusCreated, "MKCOL /dav/c", "PUT /dav/plan one")
	ann.status(http.StatusNoContent, "PUT /dav/plan two", "PUT /dav/plan three")
	ann.status(http.StatusMultiStatus, "PROPPATCH /dav/plan "+setProperty)
	before, names := ann.do("GET", "/dav/plan", nil), generations(ann.do("GET", "/api/documents/plan/history", nil))

	events := s.events(t, "c~.new", "")
	ann.with("If-Match", `"other"`).to("/dav/c/new").status(http.StatusPreconditionFailed, "MOVE /dav/plan")
	ann.to("/dav/c/new").status(http.StatusCreated, "MOVE /dav/plan")
	assert.Equal(t, []string{"three", "two", "one"}, ann.texts("c~.new"))
	after := ann.do("GET", "/dav/c/new", nil)
	assert.Equal(t, names, generations(ann.do("GET", "/api/documents/c~.new/history", nil)))
	for _, name := range []string{"ETag", "Last-Modified"} {
		assert.Equal(t, before.header.Get(name), after.header.Get(name))
	}
	assert.Contains(t, string(ann.with("Depth", "0").do("PROPFIND", "/dav/c/new", nil).text), "color")
	assertError(t, ann.do("GET", "/api/documents/plan/history", nil), http.StatusNotFound, "document_not_found")
	for e := events.next(); e["type"] != remote.NoticeUpdated; e = events.next() {
		assert.NotEqual(t, remote.NoticeState, e["type"])
	}

	ann.status(http.StatusInsufficientStorage, "PUT /dav/more no")
	ann.status(http.StatusNoContent, "DELETE /dav/c/new")
	ann.status(http.StatusCreated, "PUT /dav/plan anew")
	assert.Equal(t, []string{"anew"}, ann.texts("plan"))
}

// A document that replaces another one continues its history, as with programs that save to a new file and rename it. Its
// time is the time of the move. Otherwise a cache of the replaced document could take it for older.
func TestAMovedDocumentContinuesTheHistoryOfAnother(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.Keep = 4 })
	ann, bob := s.as(t, "ann"), s.as(t, "bob")
	ann.status(http.StatusCreated, "PUT /dav/new new-1", "PUT /dav/plan 1")
	ann.status(http.StatusNoContent, "PUT /dav/plan 2", "PUT /dav/new new-2", "PUT /dav/plan 3")
	moved := bob.to("/dav/plan").do("MOVE", "/dav/new", nil)
	require.Equal(t, http.StatusNoContent, moved.status, string(moved.text))
	assert.Equal(t, []string{"new-2", "3", "2", "1"}, ann.texts("plan"), "the oldest one was over the limit")
	ann.status(http.StatusNotFound, "GET /dav/new")
	ann.status(http.StatusNoContent, "PUT /dav/plan 5")
	assert.Equal(t, []string{"5", "new-2", "3", "2"}, ann.texts("plan"))
}

// A collection moves with the histories of all that is below it, also the content of a document that is a collection here.
func TestAMovedCollectionKeepsItsHistories(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	ann.status(http.StatusCreated, "PUT /dav/book own")
	require.Equal(t, http.StatusOK, ann.save("book~.a", ann.lock("book~.a"), "a1").status)
	ann.do("DELETE", lockOf("book~.a"), nil)
	ann.status(http.StatusNoContent, "PUT /dav/book/a a2")
	ann.status(http.StatusCreated, "MKCOL /dav/book/d", "MKCOL /dav/book/empty", "PUT /dav/book/d/b b1")
	ann.status(http.StatusNoContent, "PUT /dav/book/d/b b2")

	ann.to("/dav/copy").status(http.StatusCreated, "COPY /dav/book")
	ann.to("/dav/moved").status(http.StatusCreated, "MOVE /dav/book")
	for document, texts := range map[string][]string{
		"moved": {"own"}, "moved~.a": {"a2", "a1"}, "moved~.d~.b": {"b2", "b1"}, "copy": {"own"}, "copy~.a": {"a2"}, "copy~.d~.b": {"b2"},
	} {
		assert.Equal(t, texts, ann.texts(document), document)
	}
	ann.with("Depth", "0").status(http.StatusMultiStatus, "PROPFIND /dav/moved/empty")
	ann.with("Depth", "0").status(http.StatusNotFound, "PROPFIND /dav/book", "PROPFIND /dav/book/d")
	ann.status(http.StatusNoContent, "DELETE /dav/moved")
	for _, document := range []string{"book", "moved"} {
		assertError(t, ann.do("GET", contentOf(document), nil), http.StatusNotFound, "document_not_found")
	}

	// If one name would be too long, nothing moves.
	long := strings.Repeat("l", 100)
	ann.status(http.StatusCreated, "PUT /dav/copy/"+long+" long")
	failed := ann.to("/dav/"+strings.Repeat("x", 30)).do("MOVE", "/dav/copy", nil)
	require.Equal(t, http.StatusMultiStatus, failed.status)
	assert.Contains(t, string(failed.text), long)
	assert.Equal(t, []string{"a2"}, ann.texts("copy~.a"))
	ann.with("Depth", "0").status(http.StatusNotFound, "PROPFIND /dav/"+strings.Repeat("x", 30))
}

// A move of a collection that did not reach its end continues when the program sends it again: what has arrived stays.
func TestAMoveThatWasCutShortContinues(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	ann.status(http.StatusCreated, "MKCOL /dav/c")
	for i := range 4 {
		ann.status(http.StatusCreated, fmt.Sprintf("PUT /dav/c/%d first", i))
		ann.status(http.StatusNoContent, fmt.Sprintf("PUT /dav/c/%d second", i))
	}
	damaged := kv.Put("dav/props/c~.2", []byte("damaged")) // so the move of this file fails
	_, err := s.Store().Commit(t.Context(), kv.Txn{Then: []kv.Op{damaged}})
	require.NoError(t, err)
	ann.to("/dav/to").status(http.StatusMultiStatus, "MOVE /dav/c")
	ann.status(http.StatusOK, "GET /dav/to/0", "GET /dav/c/2")
	_, err = s.Store().Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Delete(damaged.Key())}})
	require.NoError(t, err)
	ann.to("/dav/other").status(http.StatusCreated, "COPY /dav/to")
	ann.to("/dav/other").with("Overwrite", "F").status(http.StatusPreconditionFailed, "MOVE /dav/c")
	ann.to("/dav/to").with("Overwrite", "F").status(http.StatusNoContent, "MOVE /dav/c") // it replaces nothing
	for i := range 4 {
		assert.Equal(t, []string{"second", "first"}, ann.texts(fmt.Sprint("to~.", i)))
	}
	ann.with("Depth", "0").status(http.StatusNotFound, "PROPFIND /dav/c")

	// Later moves between the two places replace, as always.
	ann.status(http.StatusCreated, "MKCOL /dav/c", "PUT /dav/c/other text")
	ann.to("/dav/to").status(http.StatusNoContent, "MOVE /dav/c")
	ann.status(http.StatusNotFound, "GET /dav/to/0")
	assert.Equal(t, []string{"text"}, ann.texts("to~.other"))
}
