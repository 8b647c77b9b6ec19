package main

import (
	"os"
	"path/filepath"
)

// writeSite lays everything the site serves flat into o.site: the demo and, beside it, the package's
// own files, just as a page that uses the package would have them.
func writeSite(o options) error {
	if err := os.MkdirAll(o.site, 0o755); err != nil {
		return err
	}
	for _, e := range demoEntries {
		if err := bundle(e, o.root, o.site, "", ""); err != nil {
			return err
		}
	}
	demo := filepath.Join(o.root, "web", "demo")
	return copyMatching(o.site,
		filepath.Join(demo, "*.html"),
		filepath.Join(demo, "*.css"),
		filepath.Join(demo, "*.svg"),
		filepath.Join(demo, "*.png"),
		filepath.Join(o.out, "holdfast*"))
}

// copyMatching copies every file that matches one of the patterns into dir.
func copyMatching(dir string, patterns ...string) error {
	for _, pattern := range patterns {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		for _, path := range paths {
			if err := copyFile(path, dir); err != nil {
				return err
			}
		}
	}
	return nil
}
