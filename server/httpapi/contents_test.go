package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/policy"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

// A user may read few of many documents. Each request looks at a limited number of them, and the pages together have all that the
// user may read. No answer names another document.
func TestAListOfDocumentsForAUserWhoMayReadLittle(t *testing.T) {
	defer func(looked int64) { maxLooked = looked }(maxLooked)
	maxLooked = 50
	store, reads := counting(t, "range")
	for i := range 2500 {
		id := fmt.Sprintf("%04d-hidden", i)
		if i%1100 == 0 {
			id = fmt.Sprintf("%04d-visible", i)
		}
		_, err := store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("content/"+id, []byte("{}"))}})
		require.NoError(t, err)
	}
	rules, err := policy.Parse([]byte("anyone documents/0000-visible read\nanyone documents/1100-visible read\nanyone documents/2200-visible read\n"))
	require.NoError(t, err)
	other, _ := counting(t, "")
	table, err := locks.Open(t.Context(), other, locks.Config{})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	a, err := New(Config{Locks: table, Contents: content.New(content.Config{KV: store}), Policy: func() *policy.Policy { return rules }})
	require.NoError(t, err)

	var names []string
	pages, next := 0, ""
	for begun := false; next != "" || !begun; begun, pages = true, pages+1 {
		reads.Store(0)
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/api/documents?limit=2&after="+next, nil)
		require.NoError(t, a.listDocuments(w, r, sessions.Session{}))
		assert.LessOrEqual(t, reads.Load(), int64(2))
		var page documentPage
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &page))
		for _, d := range page.Documents {
			names = append(names, d.Document)
		}
		assert.NotContains(t, w.Body.String(), "hidden")
		next = page.Next
		require.Less(t, pages, 10)
	}
	assert.Equal(t, []string{"0000-visible", "1100-visible", "2200-visible"}, names)
	assert.Greater(t, pages, 2)

	r := httptest.NewRequestWithContext(t.Context(), "GET", "/api/documents?after=!invented", nil)
	assert.ErrorIs(t, a.listDocuments(httptest.NewRecorder(), r, sessions.Session{}), errDocumentID)
}

// A user may read none of many documents. Those that a request looks at count towards the limit of requests, at which its page ends.
func TestAListOfDocumentsThatOneMayNotReadIsLimited(t *testing.T) {
	store, reads := counting(t, "range")
	for i := range 4000 {
		_, err := store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(fmt.Sprintf("content/%04d", i), []byte("{}"))}})
		require.NoError(t, err)
	}
	a, err := New(Config{Rate: 0.001, Burst: 25, Contents: content.New(content.Config{KV: store}), Policy: func() *policy.Policy { return &policy.Policy{} }})
	require.NoError(t, err)
	s := sessions.Session{HolderID: "eve"}
	for _, expected := range []int64{3, 1} {
		reads.Store(0)
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/api/documents?limit=1", nil)
		w := httptest.NewRecorder()
		require.NoError(t, a.listDocuments(w, r, s))
		assert.Equal(t, expected, reads.Load())
		assert.Contains(t, w.Body.String(), `"next":"!`)
	}
}

// replacing runs a function before the first blob is opened.
type replacing struct {
	blobs.Blobs
	before func()
}

func (r *replacing) Open(ctx context.Context, name string) (io.ReadSeekCloser, error) {
	before := r.before
	r.before = func() {}
	before()
	return r.Blobs.Open(ctx, name)
}

// A content is replaced and its bytes are deleted while a request reads it. The answer describes the new content alone.
func TestAReplacedContentLeavesNoHeaders(t *testing.T) {
	store, _ := counting(t, "")
	table, err := locks.Open(t.Context(), store, locks.Config{})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	files, err := blobs.OpenFiles(t.TempDir())
	require.NoError(t, err)
	opening := &replacing{Blobs: files, before: func() {}}
	contents := content.New(content.Config{KV: store, Locks: table, Blobs: opening, Keep: 1})
	a, err := New(Config{Locks: table, Contents: contents})
	require.NoError(t, err)
	lease, err := table.Acquire(t.Context(), locks.Request{Paths: []locks.Path{locks.Document("d")}, Holder: locks.Holder{ID: "ann"}, TTL: time.Hour})
	require.NoError(t, err)
	write := func(save content.Save, text string) {
		_, err := contents.Write(t.Context(), "d", content.Writer{Holder: "ann", Maker: "ann"}, lease.Token, save, nil, []byte(text))
		require.NoError(t, err)
	}
	write(content.Save{Draft: "draft", Number: 7}, "seven")
	opening.before = func() {
		write(content.Save{}, "later, by a program without drafts")
		require.NoError(t, contents.Tidy(t.Context()))
	}

	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/api/documents/d/content", nil)
	require.NoError(t, a.readContent(w, r, sessions.Session{}, "d"))
	assert.Equal(t, "later, by a program without drafts", w.Body.String())
	assert.Empty(t, w.Header().Get(saveHeader))

	opening.before = func() {
		require.NoError(t, contents.Erase(t.Context(), "d", nil))
		require.NoError(t, contents.Tidy(t.Context()))
	}
	w = httptest.NewRecorder()
	require.ErrorIs(t, a.readContent(w, r, sessions.Session{}, "d"), content.ErrNotFound)
	assert.Empty(t, w.Header(), "the content is deleted")
}

// The blobs do not answer. The page of another origin may read the error, which describes no content.
func TestAnUnreadableContentKeepsTheHeadersOfCORS(t *testing.T) {
	store, _ := counting(t, "")
	files, err := blobs.OpenFiles(t.TempDir())
	require.NoError(t, err)
	ctx, leave := context.WithCancel(t.Context())
	a, err := New(Config{Contents: content.New(content.Config{KV: store, Blobs: &replacing{files, leave}})})
	require.NoError(t, err)
	_, err = store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("content/d", []byte(`{"etag": "x", "blob": "00-x"}`))}})
	require.NoError(t, err)
	w := httptest.NewRecorder()
	w.Header().Set("Access-Control-Allow-Origin", "https://other.example")
	require.Error(t, a.readContent(w, httptest.NewRequestWithContext(ctx, "GET", "/api/documents/d/content", nil), sessions.Session{}, "d"))
	assert.Equal(t, "https://other.example", w.Header().Get("Access-Control-Allow-Origin"))
	assert.Empty(t, w.Header().Get("ETag"))
	assert.Empty(t, w.Header().Get("Content-Disposition"))
}
