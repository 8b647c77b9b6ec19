//go:build js && wasm && files

package main

import (
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/opfs"
)

// wire of the build that the facade loads where Web Locks are missing or not wanted.
func wire(s settings) (mechanism, error) {
	resource := opfs.Resource(s.root)
	files, err := opfs.NewFileLocks(s.root, opfs.Options{Warn: func(detail string) { s.warn(resource, detail) }})
	if err != nil {
		return mechanism{}, err
	}
	m := mechanism{locker: files, end: files.Close}
	if s.strategy == "auto" {
		// It is asked nevertheless, so that the events tell why a file serves instead.
		m.backends = append(m.backends, webLocks(s))
	}
	m.backends = append(m.backends, lock.Backend{Strategy: lock.FileLock, Resource: resource, Locker: files, Records: files})
	return m, nil
}
