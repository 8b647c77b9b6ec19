// Command reference writes the reference pages of the documentation: docs/reference.md from the declaration file,
// docs/reference-go.md from the comments of the Go packages.
//
//	go run ./web/reference
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

const note = "<!-- Made by make docs from %s. Change that instead. -->\n\n"

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "web/reference:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	pages, err := pages(root)
	if err != nil {
		return err
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// pages returns the texts of the pages by their names, relative to root.
func pages(root string) (map[string]string, error) {
	declarations, err := os.ReadFile(filepath.Join(root, "web", "holdfast.d.ts"))
	if err != nil {
		return nil, err
	}
	javaScript, err := declared(string(declarations))
	if err != nil {
		return nil, err
	}
	goPackages, err := documented(root)
	if err != nil {
		return nil, err
	}
	return map[string]string{"docs/reference.md": javaScript, "docs/reference-go.md": goPackages}, nil
}
