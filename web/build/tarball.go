package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// tarballTime is the time of every file in the tarball. npm itself uses it: no tool treats this year as older than
// the age of time stamps.
var tarballTime = time.Date(1985, 10, 26, 8, 15, 0, 0, time.UTC)

// writeTarball packs the package in o.out into dir as npm does, and returns the tarball's path. The same files give
// the same bytes: their order, times, modes and owners are fixed.
func writeTarball(o options, dir, version string) (string, error) {
	var packed bytes.Buffer
	if err := pack(&packed, o.out, packedFiles()); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, fmt.Sprintf("holdfast-%s.tgz", version))
	return path, os.WriteFile(path, packed.Bytes(), 0o644)
}

// pack writes the named files of dir below "package/", where npm expects them.
func pack(w *bytes.Buffer, dir string, names []string) error {
	zipped, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(zipped)
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		header := &tar.Header{
			Name: "package/" + name, Mode: 0o644, Size: int64(len(data)), ModTime: tarballTime, Format: tar.FormatUSTAR,
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(data); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return zipped.Close()
}
