package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
)

// budget is the maximum download size of a file, in bytes.
type budget struct {
	File     string
	Encoding string // "gzip" (level 9) or "brotli" (level 11)
	Limit    int
}

// budgets is the only list of limits.
var budgets = []budget{
	{File: "holdfast.js", Encoding: "gzip", Limit: 8 * 1024},
	{File: "holdfast-host.js", Encoding: "gzip", Limit: 2624},
	{File: "holdfast-autosave.js", Encoding: "gzip", Limit: 8 * 1024},
	{File: "holdfast-preview.js", Encoding: "gzip", Limit: 3 * 1024},
	{File: "holdfast-early.js", Encoding: "gzip", Limit: 3 * 1024},
	{File: "holdfast-serve.js", Encoding: "gzip", Limit: 6 * 1024},
	{File: "holdfast-broker.js", Encoding: "gzip", Limit: 1024},
	{File: "holdfast.wasm", Encoding: "brotli", Limit: 760 * 1024},
}

// size is the size of one file, in bytes.
type size struct {
	File              string `json:"-"`
	Raw, Gzip, Brotli int
}

func (s size) in(encoding string) int {
	switch encoding {
	case "gzip":
		return s.Gzip
	case "brotli":
		return s.Brotli
	}
	panic("no such encoding: " + encoding)
}

// exceeded returns one error for every exceeded budget. A file that was not measured exceeds its budget.
func exceeded(sizes []size, budgets []budget) []error {
	var errs []error
	for _, b := range budgets {
		i := slices.IndexFunc(sizes, func(s size) bool { return s.File == b.File })
		if i < 0 {
			errs = append(errs, fmt.Errorf("%s has a size budget but was not built", b.File))
			continue
		}
		if got := sizes[i].in(b.Encoding); got > b.Limit {
			errs = append(errs, fmt.Errorf("%s is %d bytes with %s: %d over its budget of %d",
				b.File, got, b.Encoding, got-b.Limit, b.Limit))
		}
	}
	return errs
}

// table returns the sizes and their budgets for people.
func table(sizes []size, budgets []budget) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%-20s %10s %10s %10s  %s\n", "bytes", "raw", "gzip -9", "brotli 11", "budget")
	for _, s := range sizes {
		var limit string
		for _, b := range budgets {
			if b.File == s.File {
				limit = fmt.Sprintf("  %s %d (%d%% used)", b.Encoding, b.Limit, s.in(b.Encoding)*100/b.Limit)
			}
		}
		fmt.Fprintf(&out, "%-20s %10d %10d %10d%s\n", s.File, s.Raw, s.Gzip, s.Brotli, limit)
	}
	return out.String()
}

// measureAll measures the files that a browser downloads from dir. Brotli at level 11 takes seconds for the Wasm, so
// the file cache stores sizes by the content's hash. A missing or broken cache only costs time.
func measureAll(dir, cache string) ([]size, error) {
	var paths []string
	for _, pattern := range []string{"*.js", "holdfast*.wasm"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	known := map[string]size{}
	if data, err := os.ReadFile(cache); err == nil {
		_ = json.Unmarshal(data, &known)
	}
	var sizes []size
	fresh := map[string]size{} // contains only current entries, so that the cache does not grow forever
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(data)
		hash := hex.EncodeToString(sum[:])
		s, ok := known[hash]
		if !ok {
			s = measure(data)
		}
		fresh[hash] = s
		s.File = filepath.Base(path)
		sizes = append(sizes, s)
	}
	data, err := json.MarshalIndent(fresh, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(cache), 0o755); err != nil {
		return nil, err
	}
	return sizes, os.WriteFile(cache, data, 0o644)
}

func measure(data []byte) size {
	var gzipped, brotlied bytes.Buffer
	compress(data, bestGzip(&gzipped))
	compress(data, brotli.NewWriterLevel(&brotlied, brotli.BestCompression))
	return size{Raw: len(data), Gzip: gzipped.Len(), Brotli: brotlied.Len()}
}

func bestGzip(to io.Writer) io.WriteCloser {
	z, err := gzip.NewWriterLevel(to, gzip.BestCompression)
	if err != nil {
		panic(err) // only for a level that does not exist
	}
	return z
}

// compress writes data through an encoder into a buffer.
func compress(data []byte, encoder io.WriteCloser) {
	if _, err := encoder.Write(data); err != nil {
		panic(err) // a bytes.Buffer accepts everything
	}
	if err := encoder.Close(); err != nil {
		panic(err)
	}
}
