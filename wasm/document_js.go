//go:build js && wasm

package main

import (
	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/lock"
)

// folder returns the folder of a document: its content, history and drafts are in "autosave" below it. Documents of this browser
// and of each server have folders of their own.
func (s *service) folder(path []string) string {
	root := s.settings.root
	if s.document != nil {
		root += "/" + s.document.Folder()
	}
	if folder := autosave.Folder(path); folder != "" {
		root += "/" + folder
	}
	return root
}

// document reads which document of the project an AutoSave is for, into its lock.
func (r *reader) document(c *autosave.Config) {
	path := r.path("path")
	if len(c.Lock.Path) > 0 && lock.Name("", c.Lock.Path) != lock.Name("", path) {
		r.fault("lock.path", "must be the same as path; give path alone")
	}
	c.Lock.Path = path
	if r.err == nil {
		r.err = autosave.CheckDocument(c.Lock)
	}
}
