// Package blobs keeps the bytes of contents outside the store that keeps their names.
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
	// ErrNotFound means that no blob has this name.
	ErrNotFound = errors.New("there is no such blob")
	// ErrFull means that there is no space for a blob. Nothing of the blob remains.
	ErrFull = errors.New("the blob store is full")
	// ErrUnavailable means that the blob store did not answer. After a failed write the blob may exist.
	ErrUnavailable = errors.New("the blob store is unavailable")
)

// Blobs keeps bytes under names that are never reused. So no blob changes, and a deletion never races with a write. A
// name has letters, digits and "-", and begins with two hexadecimal digits.
//
// An implementation must pass [blobstest.Run].
type Blobs interface {
	// Put stores a blob. After it returns nil, the blob survives a crash of the machine. After an error the blob may
	// exist. If ctx ends before the write begins, Put returns ctx's cause, and the blob does not exist. A write that has begun goes on.
	Put(ctx context.Context, name string, data []byte) error
	// Open returns a blob for reading, or ErrNotFound. After the deletion of the blob, an open reader continues or
	// fails.
	Open(ctx context.Context, name string) (io.ReadSeekCloser, error)
	// Delete removes a blob. A missing blob is no error.
	Delete(ctx context.Context, name string) error
	// Each calls f with every name, in order, until f fails, and returns f's error. It may omit blobs that are written or
	// deleted meanwhile.
	Each(ctx context.Context, f func(name string) error) error
}

// Open opens the blobs at a place: a URL that begins with s3://, see [OpenS3], or a directory.
func Open(ctx context.Context, place string) (Blobs, error) {
	scheme, _, isURL := strings.Cut(place, "://")
	switch {
	case !isURL:
		return OpenFiles(place)
	case scheme == "s3":
		return OpenS3(ctx, place)
	}
	return nil, fmt.Errorf("%q is no place for contents: use a directory, or a URL that begins with s3://", place)
}

var nameForm = regexp.MustCompile(`^[0-9a-f]{2}[0-9a-zA-Z-]{1,200}$`)

// ValidName reports whether a blob may have the name.
func ValidName(name string) bool { return nameForm.MatchString(name) }
