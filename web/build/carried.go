package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
)

// packSite writes the files of site into dir, each packed as name.gz, because the server carries and sends them so. A
// file that packing makes no smaller is copied. Files of an earlier build disappear; dot files stay.
func packSite(site, dir string) error {
	if err := removeFiles(dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(site)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(site, e.Name()))
		if err != nil {
			return err
		}
		name := e.Name()
		var packed bytes.Buffer
		compress(data, bestGzip(&packed))
		if packed.Len() < len(data) {
			name, data = name+".gz", packed.Bytes()
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// removeFiles makes dir, and removes what is in it except dot files.
func removeFiles(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(dir, "[^.]*"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}
