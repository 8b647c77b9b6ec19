package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const noticesFile = "THIRD_PARTY_LICENSES.txt"

// writeNotices writes the licences of everything that is compiled into the package: the modules that the Wasm links,
// and Go with its runtime and loader script.
func writeNotices(o options) error {
	goroot, err := goOutput("env", "GOROOT")
	if err != nil {
		return err
	}
	modules, err := linkedModules(o)
	if err != nil {
		return err
	}
	var all bytes.Buffer
	for _, m := range append(modules, linkedModule{Path: "Go", dir: goroot}) {
		text, err := licence(m.dir)
		if err != nil {
			return fmt.Errorf("licence of %s: %w", m.Path, err)
		}
		name := strings.TrimSpace(m.Path + " " + m.Version)
		fmt.Fprintf(&all, "%s\n%s\n\n%s\n\n", name, strings.Repeat("=", len(name)), bytes.TrimSpace(text))
	}
	return os.WriteFile(filepath.Join(o.out, noticesFile), all.Bytes(), 0o644)
}

// linkedModule is an external module whose code is in the Wasm.
type linkedModule struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	dir     string
}

// linkedModules lists the external modules in ./wasm, ordered by name.
func linkedModules(o options) ([]linkedModule, error) {
	cmd := exec.Command("go", "list", "-deps", "-tags="+o.tags,
		"-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}", "./wasm")
	cmd.Dir = o.root
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list what the Wasm links: %w", err)
	}
	lines := slices.Compact(slices.Sorted(strings.Lines(string(out))))
	var modules []linkedModule
	for _, line := range lines {
		if fields := strings.Split(strings.TrimSpace(line), "\t"); len(fields) == 3 {
			modules = append(modules, linkedModule{fields[0], fields[1], fields[2]})
		}
	}
	return modules, nil
}

// licence returns the text of a module's licence file.
func licence(dir string) ([]byte, error) {
	for _, name := range []string{"LICENSE", "LICENSE.md", "LICENSE.txt", "COPYING"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			return text, nil
		}
	}
	return nil, fmt.Errorf("%w: there is no licence file", os.ErrNotExist)
}
