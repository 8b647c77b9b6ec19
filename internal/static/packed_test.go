package static_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/static"
)

func packed(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	require.NoError(t, err)
	_, err = w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// packedSite is a site whose files are packed, as the binary carries it.
func packedSite(t *testing.T) (http.Handler, []byte) {
	t.Helper()
	wasmPacked := packed(t, wasm)
	h, err := static.Handler(fstest.MapFS{
		"index.html.gz":    {Data: packed(t, []byte("<p>index</p>"))},
		"holdfast.wasm.gz": {Data: wasmPacked},
		"broken.js.gz":     {Data: wasmPacked[:len(wasmPacked)-9]},
		"shot.png":         {Data: make([]byte, 1000)},
	})
	require.NoError(t, err)
	return h, wasmPacked
}

func TestPackedFileIsSentAsItIs(t *testing.T) {
	h, wasmPacked := packedSite(t)
	r := do(h, "GET", "/holdfast.wasm", "Accept-Encoding", "gzip")
	assert.Equal(t, 200, r.StatusCode)
	assert.Equal(t, "application/wasm", r.Header.Get("Content-Type"))
	assert.Equal(t, "gzip", r.Header.Get("Content-Encoding"))
	assert.Equal(t, "Accept-Encoding", r.Header.Get("Vary"))
	assert.EqualValues(t, len(wasmPacked), r.ContentLength)
	assert.Equal(t, wasmPacked, body(t, r))
}

func TestPackedFileIsUnpackedForOtherClients(t *testing.T) {
	h, _ := packedSite(t)
	for range 2 {
		r := do(h, "GET", "/holdfast.wasm")
		assert.Empty(t, r.Header.Get("Content-Encoding"))
		assert.Equal(t, "Accept-Encoding", r.Header.Get("Vary"))
		assert.EqualValues(t, len(wasm), r.ContentLength)
		assert.Equal(t, wasm, body(t, r))
	}
	assert.Equal(t, "<p>index</p>", string(body(t, do(h, "GET", "/"))))
	assert.NotEqual(t, do(h, "GET", "/").Header.Get("ETag"), do(h, "GET", "/", "Accept-Encoding", "gzip").Header.Get("ETag"))
}

func TestPackedFileHasNoAddressOfItsOwn(t *testing.T) {
	h, _ := packedSite(t)
	assert.Equal(t, 404, do(h, "GET", "/holdfast.wasm.gz").StatusCode)
}

func TestBrokenPackedFileIsAnError(t *testing.T) {
	h, _ := packedSite(t)
	r := do(h, "GET", "/broken.js")
	assert.Equal(t, 500, r.StatusCode)
	assert.Empty(t, r.Header.Get("ETag"))
	assert.Empty(t, r.Header.Get("Cache-Control"))
}

func TestHeadAndConditionsOfPackedFile(t *testing.T) {
	h, _ := packedSite(t)
	for _, encoding := range []string{"identity", "gzip"} {
		get := do(h, "GET", "/holdfast.wasm", "Accept-Encoding", encoding)
		head := do(h, "HEAD", "/holdfast.wasm", "Accept-Encoding", encoding)
		assert.Equal(t, get.Header, head.Header)
		assert.Empty(t, body(t, head))

		etag := get.Header.Get("ETag")
		again := do(h, "GET", "/holdfast.wasm", "Accept-Encoding", encoding, "If-None-Match", etag)
		assert.Equal(t, 304, again.StatusCode)
		assert.Equal(t, "Accept-Encoding", again.Header.Get("Vary"))
	}
}

// A range counts the bytes of the form that is sent (RFC 9110, section 14).
func TestRanges(t *testing.T) {
	h, wasmPacked := packedSite(t)
	for encoding, whole := range map[string][]byte{"identity": wasm, "gzip": wasmPacked} {
		etag := do(h, "GET", "/holdfast.wasm", "Accept-Encoding", encoding).Header.Get("ETag")

		r := do(h, "GET", "/holdfast.wasm", "Accept-Encoding", encoding, "Range", "bytes=2-9", "If-Range", etag)
		assert.Equal(t, 206, r.StatusCode, encoding)
		assert.Equal(t, "bytes 2-9/"+strconv.Itoa(len(whole)), r.Header.Get("Content-Range"))
		assert.Equal(t, "8", r.Header.Get("Content-Length"))
		assert.Equal(t, whole[2:10], body(t, r))

		r = do(h, "GET", "/holdfast.wasm", "Accept-Encoding", encoding, "Range", "bytes=2-9", "If-Range", `"another"`)
		assert.Equal(t, 200, r.StatusCode, "the range is of another form")
		assert.Equal(t, whole, body(t, r))

		r = do(h, "GET", "/holdfast.wasm", "Accept-Encoding", encoding, "Range", "bytes=1000000-")
		assert.Equal(t, 416, r.StatusCode)
		assert.Empty(t, r.Header.Get("Content-Encoding"))
		assert.Equal(t, "bytes */"+strconv.Itoa(len(whole)), r.Header.Get("Content-Range"))

		r = do(h, "GET", "/holdfast.wasm", "Accept-Encoding", encoding, "Range", "bytes=0-1,4-5")
		assert.Equal(t, 200, r.StatusCode, "several ranges are answered with the whole: no client would know how to unpack the parts")
		assert.Equal(t, whole, body(t, r))
	}
}

// A client on a connection counts the bytes that the header promised.
func TestFailedConditionPromisesNoBytes(t *testing.T) {
	h, _ := packedSite(t)
	server := httptest.NewServer(h)
	defer server.Close()
	for _, encoding := range []string{"identity", "gzip"} {
		r, err := http.NewRequest(http.MethodGet, server.URL+"/holdfast.wasm", nil)
		require.NoError(t, err)
		r.Header.Set("X-Forwarded-For", "192.0.2.7") // for clients on the same machine nothing is packed
		r.Header.Set("Accept-Encoding", encoding)
		r.Header.Set("If-Match", `"another"`)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		assert.Equal(t, 412, answer.StatusCode)
		assert.Empty(t, answer.Header.Get("Content-Encoding"))
		_, err = io.ReadAll(answer.Body)
		assert.NoError(t, err)
		assert.NoError(t, answer.Body.Close())
	}
}
