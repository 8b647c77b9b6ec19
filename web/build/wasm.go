package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// variants are the builds of ./wasm, by the build tag that makes the difference. Browsers with Web
// Locks, which are nearly all, do not download what the others need.
var variants = map[string]string{
	"holdfast.wasm":       "",
	"holdfast-files.wasm": "files",
}

// compileWasm builds ./wasm in all variants. The bytes depend on the sources, the toolchain, the tags
// alone: no path, no time and no commit gets in.
func compileWasm(o options) error {
	for file, tag := range variants {
		cmd := exec.Command("go", "build",
			"-trimpath",
			"-buildvcs=false",
			"-tags="+o.tags+","+tag,
			// Inlining is code twice: without it in the packages that are not on the way of a lock, the
			// compressed Wasm is 6 % smaller.
			"-gcflags=all=-l", "-gcflags=syscall/js=", "-gcflags=github.com/hack-pad/safejs/...=",
			"-gcflags=github.com/holdfast-dev/holdfast/...=",
			"-ldflags=-s -w",
			"-o", filepath.Join(o.out, file),
			"./wasm")
		cmd.Dir = o.root
		cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("compile %s: %w", file, err)
		}
	}
	return nil
}
