package main

import (
	"html/template"
	"os"
	"path/filepath"
	"slices"
)

// writeSite writes everything that the site serves into o.site, without subfolders: the demo and the package's files,
// as in a page that uses the package.
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
	if err := writePages(demo, o.site); err != nil {
		return err
	}
	return copyMatching(o.site,
		filepath.Join(demo, "*.css"),
		filepath.Join(demo, "*.svg"),
		filepath.Join(demo, "*.png"),
		filepath.Join(o.out, "element.*"),
		filepath.Join(o.out, "holdfast*"))
}

// writePages writes each page of the demo with the demo's layout.
func writePages(demo, site string) error {
	layout := filepath.Join(demo, "layout.html")
	pages, err := filepath.Glob(filepath.Join(demo, "*.html"))
	if err != nil {
		return err
	}
	for _, page := range slices.DeleteFunc(pages, func(path string) bool { return path == layout }) {
		if err := writePage(layout, page, filepath.Join(site, filepath.Base(page))); err != nil {
			return err
		}
	}
	return nil
}

func writePage(layout, page, to string) error {
	t, err := template.ParseFiles(layout, page)
	if err != nil {
		return err
	}
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	if err := t.Execute(file, filepath.Base(page)); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
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
