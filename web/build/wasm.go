package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// smallFmt takes the place of the standard library's fmt in the Wasm.
//
//go:embed fmt.go.txt
var smallFmt []byte

// smallFlags leave out what only a debugger reads. Inlining is code twice: where only the packages have it through which every
// call to JavaScript goes, the compressed Wasm is 6 % smaller.
var smallFlags = []string{
	"-gcflags=all=-l", "-gcflags=syscall/js=", "-gcflags=github.com/hack-pad/safejs/...=",
	"-gcflags=github.com/holdfast-dev/holdfast/jsbridge/...=",
	"-ldflags=-s -w",
}

// compileWasm builds ./wasm. The bytes depend on the sources, the toolchain and the tags alone: no
// path, no time and no commit gets in.
func compileWasm(o options) error {
	overlay, err := overlayFmt(filepath.Join(o.root, ".cache", "fmt"))
	if err != nil {
		return err
	}
	linked := filepath.Join(o.root, ".cache", "linked.wasm")
	args := []string{"build", "-trimpath", "-buildvcs=false", "-overlay=" + overlay, "-tags=" + o.tags, "-o", linked}
	edit := func([]byte) error { return nil }
	if !o.debug {
		args = append(args, smallFlags...)
		edit = forgetLines
	}
	cmd := exec.Command("go", append(args, "./wasm")...)
	cmd.Dir = o.root
	// One thread with a small heap gains nothing from Go's newer collector, which takes 8 KB at brotli 11.
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "GOEXPERIMENT=nogreenteagc")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("compile %s: %w", linked, err)
	}
	wasm, err := os.ReadFile(linked)
	if err != nil {
		return err
	}
	if wasm, err = merged(wasm, edit); err != nil {
		return fmt.Errorf("pack %s: %w", linked, err)
	}
	return os.WriteFile(filepath.Join(o.out, "holdfast.wasm"), wasm, 0o644)
}

// overlayFmt writes into dir what go build's -overlay needs to take smallFmt for fmt.
func overlayFmt(dir string) (string, error) {
	library, err := goOutput("list", "-f", `{{.Dir}}{{range .GoFiles}} {{.}}{{end}}`, "fmt")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	stand := filepath.Join(dir, "fmt.go")
	if err := os.WriteFile(stand, smallFmt, 0o644); err != nil {
		return "", err
	}
	names := strings.Fields(library)
	replace := map[string]string{}
	for i, name := range names[1:] {
		replace[filepath.Join(names[0], name)] = "" // is left out
		if i == 0 {
			replace[filepath.Join(names[0], name)] = stand
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, data, 0o644)
}
