// Package web carries the built site, so that one Go binary can serve it.
package web

import (
	"embed"
	"io/fs"
)

// all: also takes the placeholder .keep, without which a fresh clone would not compile.
//
//go:embed all:site
var files embed.FS

// Site returns the files that `go run ./web/build` laid out: the demo and the npm package's
// files, flat. On a clone that was never built it holds no index.html.
func Site() fs.FS {
	site, err := fs.Sub(files, "site")
	if err != nil {
		panic(err) // fs.Sub fails only on an invalid path, and this one is a constant.
	}
	return site
}
