//go:build js && wasm

package main

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/jsbridge"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/opfs"
	"github.com/holdfast-dev/holdfast/remote"
)

// folder returns the folder of a document: its content, history and drafts are in "autosave" below it. Documents of
// this browser and of each server have folders of their own.
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

var errSilent = errors.New("the browser's file storage does not answer; close all tabs of this site, or restart the browser")

// store returns the place where the document is saved: the server, if there is one, with the history in this browser.
func (e *editor) store(ctx context.Context, path []string) (autosave.Store, error) {
	s := e.s
	place, err := e.choose(ctx, s.folder(path))
	later := errors.Is(err, lock.ErrTimeout) || errors.Is(err, errSilent)
	if later {
		err = &lock.Error{Code: lock.CodeUnsupported, Operation: lock.OpAcquire, Err: err, Detail: "nothing can be saved now"}
	}
	if err == nil || s.document != nil && (later || jsbridge.ExceptionName(err) == "QuotaExceededError") {
		e.place = place // a storage that is silent or full now may keep drafts later
	}
	switch {
	case err == nil && s.document != nil:
		return remote.NewContents(s.document, autosave.NewLayout(place, opfs.SHA256), opfs.SHA256).At(path)
	case err == nil:
		return autosave.NewLayout(place, opfs.SHA256), nil
	case s.document != nil && errors.Is(err, lock.ErrUnsupported):
		return remote.NewContents(s.document, nil, opfs.SHA256).At(path) // saves work without a history
	}
	return nil, err
}

// choose returns the place of the document's files: the origin private file system or, if this page may not use it,
// IndexedDB. A document in IndexedDB stays there after the browser has learned to store files.
func (e *editor) choose(ctx context.Context, root string) (opfs.Place, error) {
	files, err := opfs.NewFiles(root, e.s.settings.writer)
	if err != nil {
		return nil, err
	}
	database := opfs.NewDatabase(root, e.s.settings.database)
	switch e.before {
	case files.Folder():
		return files, nil
	case database.Folder():
		return database, nil
	}
	ctx, stop := context.WithTimeoutCause(ctx, checkLimit, errSilent)
	defer stop()
	held := make(chan bool, 1)
	go func() { held <- database.Holds(ctx) }()
	err = files.Check(ctx)
	if <-held {
		return database, nil
	}
	if !opfs.Refused(err) || jsbridge.NewWebLocks().Missing() != nil { // drafts in IndexedDB need Web Locks
		return files, err
	}
	return database, database.Check(ctx)
}
