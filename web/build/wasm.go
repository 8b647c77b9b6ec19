package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// standins contains small files that replace packages of the standard library in the Wasm, as NAME.go.txt with a hyphen for each
// slash.
//
//go:embed standins
var standins embed.FS

// replaced lists the packages that have a stand-in, each with the library files that it replaces. An empty list means
// all files.
var replaced = map[string][]string{
	"fmt":              nil,
	"internal/godebug": nil,
	"internal/strconv": {"atoc.go", "atof.go", "atofeisel.go", "ctoa.go", "decimal.go", "deps.go", "ftoa.go", "ftoadbox.go", "ftoafixed.go", "math.go", "pow10tab.go"},
	"runtime": {"mcheckmark.go", "hexdump.go", "trace.go", "traceallocfree.go", "tracebuf.go", "tracecpu.go", "traceevent.go", "tracemap.go",
		"traceregion.go", "traceruntime.go", "tracestack.go", "tracestatus.go", "tracestring.go", "tracetime.go", "tracetype.go"},
	"strconv": {"isprint.go", "quote.go"},
	"time":    {"format.go", "format_rfc3339.go"},
}

// smallFlags omit everything that only a debugger reads. Inlining duplicates code. If only the packages on the path
// of every JavaScript call use it, the compressed Wasm is 6 % smaller.
var smallFlags = []string{
	"-gcflags=all=-l", "-gcflags=syscall/js=", "-gcflags=github.com/hack-pad/safejs/...=",
	"-ldflags=-s -w",
}

// compileWasm builds ./wasm. Its bytes depend only on the sources, the toolchain and the tags. They contain no path,
// time or commit.
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
	// Go's newer collector has no benefit for one thread with a small heap, and takes 8 KB at brotli 11.
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

// overlayStandins writes into dir the overlay file that makes go build use each stand-in for its package.
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

// standIn adds files of pkg to replace. It writes the stand-in into dir. The stand-in replaces the first file, and
// the others are omitted.
func standIn(pkg string, files []string, dir string, replace map[string]string) error {
	name := strings.ReplaceAll(pkg, "/", "-") + ".go"
	small, err := standins.ReadFile("standins/" + name + ".txt")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, name)
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
