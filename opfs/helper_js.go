//go:build js && wasm

package opfs

import "github.com/hack-pad/safejs"

// helper is a Files of files.js, or undefined.
var helper safejs.Value

// UseHelper makes a helper worker open files for a program in a page, because only dedicated workers have sync access
// handles. h is a Files of files.js. UseHelper must be called before anything else of this package.
func UseHelper(h safejs.Value) { helper = h }

func helped() bool { return helper.Type() == safejs.TypeObject }
