// Package static serves a small site from memory, for the holdfast binary and for tests that need the same headers.
package static

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

// ErrNoIndex means that the site has no index.html, probably because it was never built.
var ErrNoIndex = errors.New("the site has no index.html")

type handler struct {
	files map[string]file // by URL path
}

// Handler serves the files of site, with index.html also at "/". It reads the files once, so it does not see later
// changes, and no request reads a file. Handler omits dot files.
//
// A file name.gz is the packed form of name, and has no address of its own. A client that accepts gzip gets it as it
// is. The first request of another client unpacks it, which takes 40 ms for the Wasm. A file that is not packed is
// packed by the first request from another machine, which takes half a second for the Wasm.
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
		name, packed := strings.CutSuffix(name, ".gz")
		if packed {
			h.files["/"+name] = packedFile(name, data)
		} else {
			h.files["/"+name] = plainFile(name, data)
		}
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
	sent, err := f.choose(r)
	if err != nil {
		http.Error(w, "This file cannot be unpacked.", http.StatusInternalServerError)
		return
	}
	header.Set("Content-Type", f.contentType)
	header.Set("Cache-Control", "no-cache")
	header.Set("ETag", sent.etag)
	if sent.varies {
		header.Set("Vary", "Accept-Encoding")
	}
	if sent.encoding != "" {
		header.Set("Content-Encoding", sent.encoding)
	}
	// A server may ignore Range. No client would know how to unpack the parts of a packed file.
	if strings.Contains(r.Header.Get("Range"), ",") {
		r = r.Clone(r.Context())
		r.Header.Del("Range")
	}
	http.ServeContent(&sized{w, len(sent.data)}, r, path.Base(r.URL.Path), time.Time{}, bytes.NewReader(sent.data))
}

// sized adds what ServeContent omits where there is an encoding: the length of the whole. It takes the encoding from
// answers without a body of the file.
type sized struct {
	http.ResponseWriter
	size int
}

func (s *sized) WriteHeader(status int) {
	switch status {
	case http.StatusOK:
		s.Header().Set("Content-Length", strconv.Itoa(s.size))
	case http.StatusPartialContent:
	default:
		s.Header().Del("Content-Encoding")
	}
	s.ResponseWriter.WriteHeader(status)
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
