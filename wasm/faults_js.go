//go:build js && wasm && faults

package main

import (
	"context"
	"strings"
	"syscall"
	"unsafe"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/wasm/options"
)

// In the build for the crash tests, acquireProjectLock({mode: "fault:kind"}) makes this program fail in that way. No
// published build contains this file.
func init() {
	acquire := methods["acquire"]
	methods["acquire"] = func(s *service, ctx context.Context, arg *options.Reader, callback safejs.Value) (any, error) {
		if kind, ok := strings.CutPrefix(arg.Text("mode"), "fault:"); ok {
			fail(kind)
			select {} // the call is pending until the program has died
		}
		return acquire(s, ctx, arg, callback)
	}
}

func fail(kind string) {
	switch kind {
	case "call":
		panic("planted")
	case "goroutine":
		go func() { panic("planted") }()
	case "exit":
		syscall.Exit(3)
	case "memory":
		var hoard [][]byte
		for {
			hoard = append(hoard, make([]byte, 1<<28))
		}
	case "stack":
		deeper(0)
	case "trap":
		// Read beyond the end of the memory: the engine stops the program in the middle.
		println(*(*byte)(unsafe.Pointer(^uintptr(15) & 0xffffffff)))
	default:
		panic("there is no fault " + kind)
	}
}

func deeper(n int) int { return deeper(n+1) + 1 }
