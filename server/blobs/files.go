package blobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/disk"
)

// Files keeps each blob in a file, in a folder named by the first two digits.
type Files struct {
	dir string
	// fault runs before each step of a write; a test uses it to make the step fail. Nil means no fault.
	fault func(step string) error
	places
}

var _ Blobs = (*Files)(nil)

const (
	// partial is the prefix of files that are being written.
	partial = "tmp-"
	// partialAge is the age after which such a file was left by a crash. Another server that has mounted the directory may
	// be writing a younger one.
	partialAge = time.Hour
)

// OpenFiles returns the blobs of a directory. It creates the directory if needed.
func OpenFiles(dir string) (*Files, error) {
	for i := range 256 {
		if err := os.MkdirAll(filepath.Join(dir, fmt.Sprintf("%02x", i)), 0o700); err != nil {
			return nil, fmt.Errorf("the folder of the contents cannot be made: %w", err)
		}
	}
	if err := errors.Join(disk.Sync(dir), disk.Sync(filepath.Dir(dir))); err != nil {
		return nil, fmt.Errorf("the folder of the contents cannot be made durable: %w", err)
	}
	return &Files{dir: dir, places: newPlaces()}, nil
}

func (f *Files) path(name string) (string, error) {
	if !ValidName(name) {
		return "", fmt.Errorf("%q is no name of a blob", name)
	}
	return filepath.Join(f.dir, name[:2], name), nil
}

// Put writes a temporary file, flushes it, renames it and flushes the folder.
func (f *Files) Put(ctx context.Context, name string, data []byte) error {
	path, err := f.path(name)
	if err != nil {
		return err
	}
	return inTurn(ctx, f.writes, func() error { return f.write(path, data) })
}

func (f *Files) write(path string, data []byte) (err error) {
	var file *os.File
	if err = f.step("create", func() (err error) {
		file, err = os.CreateTemp(filepath.Dir(path), partial+"*")
		return err
	}); err != nil {
		return writeError(err)
	}
	err = f.step("write", func() error { _, err := file.Write(data); return err })
	if err == nil {
		err = f.step("flush", file.Sync)
	}
	err = errors.Join(err, f.step("close", func() error { return nil }), file.Close())
	if err == nil {
		err = f.step("rename", func() error { return os.Rename(file.Name(), path) })
	}
	if err == nil {
		if err = f.step("flush the folder", func() error { return disk.Sync(filepath.Dir(path)) }); err != nil {
			_ = os.Remove(path) // the blob is not durable
		}
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return writeError(err)
	}
	return nil
}

// step runs one step of a write.
func (f *Files) step(name string, do func() error) error {
	if f.fault != nil {
		if err := f.fault(name); err != nil {
			return err
		}
	}
	return do()
}

// writeError distinguishes a full disk from other errors.
func writeError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return fmt.Errorf("a content cannot be written: %w", err)
}

// Delete removes the file. A crash may undo the deletion; a second Delete then removes the file again.
func (f *Files) Delete(_ context.Context, name string) error {
	path, err := f.path(name)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("a content cannot be removed: %w", err)
	}
	return nil
}

// Each reads the folders one after the other. It removes files that a crash left half-written an hour ago; the next call tries those
// again that cannot be removed.
func (f *Files) Each(ctx context.Context, call func(name string) error) error {
	for i := range 256 {
		folder := filepath.Join(f.dir, fmt.Sprintf("%02x", i))
		entries, err := os.ReadDir(folder)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if strings.HasPrefix(e.Name(), partial) {
				if info, err := e.Info(); err == nil && time.Since(info.ModTime()) >= partialAge {
					_ = os.Remove(filepath.Join(folder, e.Name()))
				}
				continue
			}
			if err := call(e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}
