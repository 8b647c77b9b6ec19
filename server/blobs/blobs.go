// Package blobs keeps the bytes of contents outside the store that agrees on their names.
package blobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

var (
	// ErrNotFound means that there is no blob of a name.
	ErrNotFound = errors.New("there is no such blob")
	// ErrFull means that there is no room for a blob. Nothing of it is left.
	ErrFull = errors.New("the blob store is full")
	// ErrUnavailable means that the blob store did not answer. Of a blob that was being written there may be one.
	ErrUnavailable = errors.New("the blob store is unavailable")
)

// Blobs keeps bytes under names that are never used twice, so that no blob changes and deleting one never races with
// writing it. A name has letters, digits and "-", and begins with two hexadecimal digits.
//
// An implementation must pass [blobstest.Run].
type Blobs interface {
	// Put stores a blob. When it returns nil, the blob survives a crash of the machine; after an error there may be one.
	Put(ctx context.Context, name string, data []byte) error
	// Open returns a blob for reading, or ErrNotFound. A reader that is open goes on when the blob is deleted, or fails.
	Open(ctx context.Context, name string) (io.ReadSeekCloser, error)
	// Delete removes a blob. One that is not there is no error.
	Delete(ctx context.Context, name string) error
	// Each calls f with every name until f fails, and returns its error. Blobs that come or go meanwhile may be left out.
	Each(ctx context.Context, f func(name string) error) error
}

// Open opens the blobs of a place: an URL that begins with s3://, see [OpenS3], or a directory.
func Open(ctx context.Context, place string) (Blobs, error) {
	scheme, _, isURL := strings.Cut(place, "://")
	switch {
	case !isURL:
		return OpenFiles(place)
	case scheme == "s3":
		return OpenS3(ctx, place)
	}
	return nil, fmt.Errorf("%q is no place for contents: it is a directory, or begins with s3://", place)
}

var nameForm = regexp.MustCompile(`^[0-9a-f]{2}[0-9a-zA-Z-]{1,200}$`)

// ValidName reports whether a blob may have the name.
func ValidName(name string) bool { return nameForm.MatchString(name) }
