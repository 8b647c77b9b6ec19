package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// standins has small files that take the place of packages of the standard library in the Wasm: a NAME.go.txt for each.
//
//go:embed standins
var standins embed.FS

// replaced has the packages for which there is a stand-in, each with the files of the library that it replaces: all where none is named.
var replaced = map[string][]string{
	"fmt":              nil,
	"internal/godebug": nil,
	"internal/strconv": {"atoc.go", "atof.go", "atofeisel.go", "ctoa.go", "decimal.go", "deps.go", "ftoa.go", "ftoadbox.go", "ftoafixed.go", "math.go", "pow10tab.go"},
	"time":             {"format.go", "format_rfc3339.go"},
}

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
	overlay, err := overlayStandins(filepath.Join(o.root, ".cache", "standins"))
	if err != nil {
		return err
	}
	linked := filepath.Join(o.root, ".cache", "linked.wasm")
	args := []string{"build", "-trimpath", "-buildvcs=false", "-overlay=" + overlay, "-tags=" + o.tags, "-o", linked}
	if !o.debug {
		args = append(args, smallFlags...)
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
	if wasm, err = merged(wasm); err != nil {
		return fmt.Errorf("pack %s: %w", linked, err)
	}
	return os.WriteFile(filepath.Join(o.out, "holdfast.wasm"), wasm, 0o644)
}

// overlayStandins writes into dir what go build's -overlay needs to take each stand-in for its package.
func overlayStandins(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for pkg, files := range replaced {
		if err := standIn(pkg, files, dir, replace); err != nil {
			return "", fmt.Errorf("replace package %s: %w", pkg, err)
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, data, 0o644)
}

// standIn adds files of pkg to replace. The stand-in, which it writes into dir, takes the place of the first, and the others are left out.
func standIn(pkg string, files []string, dir string, replace map[string]string) error {
	small, err := standins.ReadFile("standins/" + path.Base(pkg) + ".go.txt")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, path.Base(pkg)+".go")
	if err := os.WriteFile(file, small, 0o644); err != nil {
		return err
	}
	library, err := goOutput("list", "-f", `{{.Dir}}{{range .GoFiles}} {{.}}{{end}}`, pkg)
	if err != nil {
		return err
	}
	names := strings.Fields(library)
	if files == nil {
		files = names[1:]
	}
	for _, name := range files {
		if !slices.Contains(names, name) {
			return fmt.Errorf("the library has no file %s: this version of Go is new to web/build", name)
		}
		replace[filepath.Join(names[0], name)], file = file, ""
	}
	return nil
}
