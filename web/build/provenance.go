package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const provenanceFile = "provenance.json"

// provenance describes the inputs of a package's Wasm, so that anybody can build it again and compare.
type provenance struct {
	Wasm   wasmOrigin   `json:"wasm"`
	Source sourceOrigin `json:"source"`
}

type wasmOrigin struct {
	File    string         `json:"file"`
	SHA256  string         `json:"sha256"`
	Go      string         `json:"go"`   // version of the toolchain
	Tags    string         `json:"tags"` // build tags; empty in a published package
	Modules []linkedModule `json:"modules"`
}

// sourceOrigin is the module and its commit. Commit is empty if the sources are not in their own git clone. Dirty
// means that the sources differed from the commit.
type sourceOrigin struct {
	Module  string `json:"module"`
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Dirty   bool   `json:"dirty"`
}

func writeProvenance(o options, version string) error {
	wasm, err := os.ReadFile(filepath.Join(o.out, "holdfast.wasm"))
	if err != nil {
		return err
	}
	goVersion, err := goOutput("env", "GOVERSION")
	if err != nil {
		return err
	}
	modules, err := linkedModules(o)
	if err != nil {
		return err
	}
	path, err := modulePath(o.root)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(wasm)
	p := provenance{
		Wasm: wasmOrigin{
			File: "holdfast.wasm", SHA256: hex.EncodeToString(sum[:]), Go: goVersion, Tags: o.tags, Modules: modules,
		},
		Source: sourceOrigin{Module: path, Version: version},
	}
	p.Source.Commit, p.Source.Dirty = commit(o.root)
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.out, provenanceFile), append(data, '\n'), 0o644)
}

func modulePath(root string) (string, error) {
	data, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return "", err
	}
	first, _, _ := bytes.Cut(data, []byte("\n"))
	path, ok := strings.CutPrefix(string(first), "module ")
	if !ok {
		return "", fmt.Errorf("%s/go.mod does not begin with the module's path", root)
	}
	return strings.TrimSpace(path), nil
}

// commit returns the commit of the clone at root, and whether any file differs from it, including new files. It
// returns "" if root is not a clone itself: the commit of a surrounding repository does not describe a copy inside
// it.
func commit(root string) (id string, dirty bool) {
	top, err := git(root, "rev-parse", "--show-toplevel")
	if err != nil {
		return "", false
	}
	if same, err := samePlace(top, root); err != nil || !same {
		return "", false
	}
	if id, err = git(root, "rev-parse", "HEAD"); err != nil {
		return "", false
	}
	changes, err := git(root, "status", "--porcelain")
	return id, err != nil || changes != ""
}

func samePlace(a, b string) (bool, error) {
	first, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	second, err := os.Stat(b)
	if err != nil {
		return false, err
	}
	return os.SameFile(first, second), nil
}

func git(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}
