// Package web carries the built site, so that one Go binary can serve it.
package web

import (
	"embed"
	"io/fs"
)

// all: also takes the placeholder .keep, without which a fresh clone would not compile.
//
//go:embed all:packed
var files embed.FS

// Site returns the files that `go run ./web/build` laid out: the demo and the npm package's
// files, flat, and packed as name.gz where that makes them smaller. On a clone that was never built it has no file
// but .keep.
func Site() fs.FS {
	site, err := fs.Sub(files, "packed")
	if err != nil {
		panic(err) // fs.Sub fails only on an invalid path, and this one is a constant.
	}
	return site
}
