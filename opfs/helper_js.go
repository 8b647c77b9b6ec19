//go:build js && wasm

package opfs

import "github.com/hack-pad/safejs"

// helper is a Files of files.js, or nothing.
var helper safejs.Value

// UseHelper has a helper worker open files, for a program in a page: sync access handles
// exist in dedicated workers alone. h is a Files of files.js. It must be called before
// anything else of this package.
func UseHelper(h safejs.Value) { helper = h }

func helped() bool { return helper.Type() == safejs.TypeObject }
