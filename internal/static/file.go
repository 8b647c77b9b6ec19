package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"sync"
)

// file is one file of the site, in every form in which it is sent.
type file struct {
	contentType string
	plain       func() (variant, error) // unpacks at the first call
	gzip        func() *variant         // packs at the first call; nil if that gains nothing
}

// variant is one representation with its own strong ETag.
type variant struct {
	etag     string
	encoding string // "" or "gzip"
	varies   bool   // Accept-Encoding decides between this and another one
	data     []byte
}

// plainFile returns a file of which the site has the plain form.
func plainFile(name string, data []byte) file {
	hash, kind := hashOf(data), kindOf(name)
	packed := sync.OnceValue(func() *variant {
		if !kind.compressible {
			return nil
		}
		packed := pack(data)
		if len(packed) >= len(data) {
			return nil
		}
		return &variant{etag: `"` + hash + `-gzip"`, encoding: "gzip", data: packed}
	})
	return file{
		contentType: kind.contentType,
		plain:       func() (variant, error) { return variant{etag: `"` + hash + `"`, data: data}, nil },
		gzip:        packed,
	}
}

// packedFile returns a file of which the site has the packed form only. Both ETags are made from that: equal packed
// bytes have equal plain ones.
func packedFile(name string, data []byte) file {
	hash := hashOf(data)
	packed := &variant{etag: `"` + hash + `-gzip"`, encoding: "gzip", data: data}
	return file{
		contentType: kindOf(name).contentType,
		plain: sync.OnceValues(func() (variant, error) {
			plain, err := unpack(data)
			return variant{etag: `"` + hash + `"`, data: plain}, err
		}),
		gzip: func() *variant { return packed },
	}
}

// choose returns the form in which the file is sent.
func (f file) choose(r *http.Request) (variant, error) {
	if local(r) {
		return f.plain()
	}
	sent := f.gzip()
	if sent == nil {
		return f.plain()
	}
	chosen := *sent
	if !acceptsGzip(r.Header.Values("Accept-Encoding")) {
		plain, err := f.plain()
		if err != nil {
			return variant{}, err
		}
		chosen = plain
	}
	chosen.varies = true
	return chosen, nil
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func pack(data []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(data)
	if err := errors.Join(err, w.Close()); err != nil {
		panic(err) // a bytes.Buffer accepts everything
	}
	return out.Bytes()
}

func unpack(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
