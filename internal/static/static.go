// Package static serves a small site from memory, for the holdfast binary and for tests that need the same headers.
package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ErrNoIndex means that the site has no index.html, probably because it was never built.
var ErrNoIndex = errors.New("the site has no index.html")

// file is one file of the site, in every form in which it is sent.
type file struct {
	contentType string
	plain       variant
	gzip        func() *variant // compresses at the first call; nil if compression gains nothing
}

// variant is one representation with its own strong ETag.
type variant struct {
	etag string
	data []byte
}

type handler struct {
	files map[string]file // by URL path
}

// Handler serves the files of site, with index.html also at "/". It reads the files once, so it does not see later
// changes, and no request reads a file. A file is compressed at the first request from another machine. That takes
// half a second for the Wasm, and a server with only local requests never does it. Handler omits dot files.
//
// Every response has the headers of [SecurityHeaders]. Browsers store the files but revalidate them each time
// (Cache-Control: no-cache, and a strong ETag made from SHA-256), so a page never mixes the files of two builds.
//
// Handler fails with [ErrNoIndex] if there is no index.html.
func Handler(site fs.FS) (http.Handler, error) {
	h := &handler{files: map[string]file{}}
	err := fs.WalkDir(site, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := strings.HasPrefix(entry.Name(), ".") && name != "."
		switch {
		case hidden && entry.IsDir():
			return fs.SkipDir
		case hidden || entry.IsDir():
			return nil
		}
		data, err := fs.ReadFile(site, name)
		if err != nil {
			return err
		}
		h.files["/"+name] = newFile(name, data)
		return nil
	})
	if err != nil {
		return nil, err
	}
	index, ok := h.files["/index.html"]
	if !ok {
		return nil, ErrNoIndex
	}
	h.files["/"] = index
	return h, nil
}

func newFile(name string, data []byte) file {
	sum := sha256.Sum256(data)
	hash := hex.EncodeToString(sum[:])
	kind := kindOf(name)
	return file{
		contentType: kind.contentType,
		plain:       variant{etag: `"` + hash + `"`, data: data},
		gzip: sync.OnceValue(func() *variant {
			if !kind.compressible {
				return nil
			}
			packed := compress(data)
			if len(packed) >= len(data) {
				return nil
			}
			return &variant{etag: `"` + hash + `-gzip"`, data: packed}
		}),
	}
}

func compress(data []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(data)
	if err := errors.Join(err, w.Close()); err != nil {
		panic(err) // a bytes.Buffer accepts everything
	}
	return out.Bytes()
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	SecurityHeaders(header)
	f, ok := h.files[r.URL.Path]
	if !ok {
		http.Error(w, "There is no such file here.", http.StatusNotFound)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "This file can only be read.", http.StatusMethodNotAllowed)
		return
	}
	sent := f.plain
	if !local(r) {
		sent = f.negotiate(header, r.Header.Values("Accept-Encoding"))
	}
	header.Set("Content-Type", f.contentType)
	header.Set("Cache-Control", "no-cache")
	header.Set("ETag", sent.etag)
	http.ServeContent(w, r, path.Base(r.URL.Path), time.Time{}, bytes.NewReader(sent.data))
}

// negotiate returns the form in which the file is sent, and sets its headers.
func (f file) negotiate(header http.Header, accepted []string) variant {
	packed := f.gzip()
	if packed == nil {
		return f.plain
	}
	header.Set("Vary", "Accept-Encoding")
	if !acceptsGzip(accepted) {
		return f.plain
	}
	header.Set("Content-Encoding", "gzip")
	// ServeContent omits the length if there is an encoding.
	header.Set("Content-Length", strconv.Itoa(len(packed.data)))
	return *packed
}

// SecurityHeaders sets the headers of every response. The policy lets a page run its own scripts and Wasm, but no
// inline script or style, no code of another origin, and no frame around the page.
func SecurityHeaders(header http.Header) {
	header.Set("Content-Security-Policy", strings.Join([]string{
		"default-src 'none'",
		"script-src 'self' 'wasm-unsafe-eval'",
		"worker-src 'self'",
		"style-src 'self'",
		"img-src 'self' data:",
		"connect-src 'self'",
		"base-uri 'none'",
		"form-action 'none'",
		"frame-ancestors 'none'",
	}, "; "))
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
}
