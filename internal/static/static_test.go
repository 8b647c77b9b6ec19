package static_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/static"
)

var wasm = append([]byte("\x00asm"), bytes.Repeat([]byte{0}, 10_000)...)

func newHandler(t *testing.T) http.Handler {
	t.Helper()
	h, err := static.Handler(fstest.MapFS{
		"index.html":    {Data: bytes.Repeat([]byte("<p>index</p>"), 100)},
		"holdfast.js":   {Data: bytes.Repeat([]byte("export {};"), 100)},
		"holdfast.wasm": {Data: wasm},
		"tiny.css":      {Data: []byte("a{}")},
		"icon.svg":      {Data: bytes.Repeat([]byte("<svg/>"), 100)},
		"shot.png":      {Data: make([]byte, 1000)},
		"holdfast.d.ts": {Data: bytes.Repeat([]byte("export {};"), 100)},
		"a.js.map":      {Data: []byte("{}")},
		"odd.xyz":       {Data: []byte("?")},
		".keep":         {},
	})
	require.NoError(t, err)
	return h
}

func do(h http.Handler, method, path string, headers ...string) *http.Response {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) []byte {
	t.Helper()
	data, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return data
}

func TestContentTypes(t *testing.T) {
	h := newHandler(t)
	for path, want := range map[string]string{
		"/":              "text/html; charset=utf-8",
		"/index.html":    "text/html; charset=utf-8",
		"/holdfast.js":   "text/javascript; charset=utf-8",
		"/holdfast.wasm": "application/wasm",
		"/tiny.css":      "text/css; charset=utf-8",
		"/icon.svg":      "image/svg+xml",
		"/shot.png":      "image/png",
		"/holdfast.d.ts": "text/plain; charset=utf-8",
		"/a.js.map":      "application/json",
		"/odd.xyz":       "application/octet-stream",
	} {
		r := do(h, "GET", path)
		assert.Equal(t, 200, r.StatusCode, path)
		assert.Equal(t, want, r.Header.Get("Content-Type"), path)
	}
}

func TestIndexIsAtTheRoot(t *testing.T) {
	h := newHandler(t)
	assert.Equal(t, body(t, do(h, "GET", "/index.html")), body(t, do(h, "GET", "/")))
}

func TestASiteWithoutIndexIsRefused(t *testing.T) {
	_, err := static.Handler(fstest.MapFS{".keep": {}})
	assert.ErrorIs(t, err, static.ErrNoIndex)
}

func TestConditionalRequests(t *testing.T) {
	h := newHandler(t)
	for _, encoding := range []string{"identity", "gzip"} {
		first := do(h, "GET", "/holdfast.js", "Accept-Encoding", encoding)
		etag := first.Header.Get("ETag")
		assert.Regexp(t, `^"[0-9a-f]{64}(-gzip)?"$`, etag, "a strong ETag of SHA-256")
		assert.Equal(t, "no-cache", first.Header.Get("Cache-Control"))

		again := do(h, "GET", "/holdfast.js", "Accept-Encoding", encoding, "If-None-Match", etag)
		assert.Equal(t, 304, again.StatusCode)
		assert.Empty(t, body(t, again))
		assert.Equal(t, etag, again.Header.Get("ETag"))

		changed := do(h, "GET", "/holdfast.js", "Accept-Encoding", encoding, "If-None-Match", `"old"`)
		assert.Equal(t, 200, changed.StatusCode)
	}
}

func TestTheTwoFormsHaveTheirOwnETags(t *testing.T) {
	h := newHandler(t)
	plain := do(h, "GET", "/holdfast.js")
	packed := do(h, "GET", "/holdfast.js", "Accept-Encoding", "gzip")
	assert.NotEqual(t, plain.Header.Get("ETag"), packed.Header.Get("ETag"))
}

func TestGzip(t *testing.T) {
	h := newHandler(t)
	r := do(h, "GET", "/holdfast.wasm", "Accept-Encoding", "br, gzip;q=0.8")
	assert.Equal(t, "gzip", r.Header.Get("Content-Encoding"))
	assert.Equal(t, "Accept-Encoding", r.Header.Get("Vary"))
	data := body(t, r)
	assert.EqualValues(t, len(data), r.ContentLength)
	z, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	unpacked, err := io.ReadAll(z)
	require.NoError(t, err)
	assert.Equal(t, wasm, unpacked)
}

func TestPlainWhereGzipIsNotAccepted(t *testing.T) {
	h := newHandler(t)
	for _, accept := range []string{"", "br", "gzip;q=0", "gzip; q=nonsense", "*, gzip;q=0", "*;q=0"} {
		r := do(h, "GET", "/holdfast.wasm", "Accept-Encoding", accept)
		assert.Empty(t, r.Header.Get("Content-Encoding"), accept)
		assert.Equal(t, "Accept-Encoding", r.Header.Get("Vary"), accept)
		assert.Equal(t, wasm, body(t, r), accept)
	}
	for _, accept := range []string{"*", "GZIP", "gzip;q=0.1", "deflate, gzip"} {
		r := do(h, "GET", "/holdfast.wasm", "Accept-Encoding", accept)
		assert.Equal(t, "gzip", r.Header.Get("Content-Encoding"), accept)
	}
}

func TestFilesThatGainNothingStayUncompressed(t *testing.T) {
	h := newHandler(t)
	for _, path := range []string{"/shot.png", "/tiny.css"} {
		r := do(h, "GET", path, "Accept-Encoding", "gzip")
		assert.Empty(t, r.Header.Get("Content-Encoding"), path)
		assert.Empty(t, r.Header.Get("Vary"), path)
	}
}

func TestHead(t *testing.T) {
	h := newHandler(t)
	for _, encoding := range []string{"identity", "gzip"} {
		get := do(h, "GET", "/holdfast.wasm", "Accept-Encoding", encoding)
		head := do(h, "HEAD", "/holdfast.wasm", "Accept-Encoding", encoding)
		assert.Equal(t, 200, head.StatusCode)
		assert.Empty(t, body(t, head))
		assert.Equal(t, get.Header, head.Header)
	}
}

func TestRefusals(t *testing.T) {
	h := newHandler(t)
	for _, path := range []string{"/none.js", "/.keep", "/holdfast.js/", "/../index.html", "//"} {
		assert.Equal(t, 404, do(h, "GET", path).StatusCode, path)
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS"} {
		r := do(h, method, "/holdfast.js")
		assert.Equal(t, 405, r.StatusCode, method)
		assert.Equal(t, "GET, HEAD", r.Header.Get("Allow"), method)
	}
}

func TestSecurityHeadersAreOnEveryAnswer(t *testing.T) {
	h := newHandler(t)
	for _, r := range []*http.Response{
		do(h, "GET", "/"), do(h, "GET", "/none"), do(h, "POST", "/"), do(h, "HEAD", "/holdfast.js"),
		do(h, "GET", "/", "If-None-Match", do(h, "GET", "/").Header.Get("ETag")),
	} {
		assert.Equal(t, "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; "+
			"style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; "+
			"form-action 'none'; frame-ancestors 'none'", r.Header.Get("Content-Security-Policy"))
		assert.Equal(t, "nosniff", r.Header.Get("X-Content-Type-Options"))
		assert.Equal(t, "no-referrer", r.Header.Get("Referrer-Policy"))
		assert.Equal(t, "same-origin", r.Header.Get("Cross-Origin-Opener-Policy"))
	}
}

func TestNothingIsPackedForTheSameMachine(t *testing.T) {
	h := newHandler(t)
	for _, c := range []struct {
		from, passedOn string
		want           string
	}{
		{"127.0.0.1:5000", "", ""},
		{"[::1]:5000", "", ""},
		{"127.0.0.1:5000", "192.0.2.7", "gzip"}, // a proxy before this server
		{"192.0.2.7:5000", "", "gzip"},
	} {
		r := httptest.NewRequest("GET", "/holdfast.wasm", nil)
		r.RemoteAddr = c.from
		r.Header.Set("Accept-Encoding", "gzip")
		if c.passedOn != "" {
			r.Header.Set("X-Forwarded-For", c.passedOn)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		assert.Equal(t, c.want, w.Header().Get("Content-Encoding"), c)
	}
}
