// Package follow keeps what a file says up to date while a program runs.
package follow

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// every is how often files are looked at. A look at one that has not changed reads nothing.
const every = 2 * time.Second

// Files are files that are read together, as a certificate and its key. What they said last and could be read is current.
type Files[T any] struct {
	paths   []string
	parse   func(texts ...[]byte) (T, error)
	current atomic.Pointer[T]

	mu   sync.Mutex // of what follows
	seen []stamp
}

// stamp tells one version of a file from another.
type stamp struct {
	modified time.Time
	size     int64
}

// Open reads files. A file that cannot be read, or be understood by parse, is an error that names it.
func Open[T any](parse func(texts ...[]byte) (T, error), paths ...string) (*Files[T], error) {
	f := &Files[T]{paths: paths, parse: parse}
	return f, f.Reload()
}

// Get returns what the files say.
func (f *Files[T]) Get() T { return *f.current.Load() }

// Reload reads the files again. With an error, what they said before stays.
func (f *Files[T]) Reload() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen, err := f.stamps() // before reading: a change meanwhile is seen at the next look
	if err == nil {
		err = f.read()
	}
	f.seen = seen
	return err
}

func (f *Files[T]) read() error {
	texts := make([][]byte, len(f.paths))
	for i, path := range f.paths {
		var err error
		if texts[i], err = os.ReadFile(path); err != nil {
			return err
		}
	}
	value, err := f.parse(texts...)
	if err != nil {
		return fmt.Errorf("%s: %w", f.paths[0], err)
	}
	f.current.Store(&value)
	return nil
}

func (f *Files[T]) stamps() ([]stamp, error) {
	list := make([]stamp, len(f.paths))
	for i, path := range f.paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		list[i] = stamp{info.ModTime(), info.Size()}
	}
	return list, nil
}

// changed reports whether the files are not as at the last look.
func (f *Files[T]) changed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, err := f.stamps()
	if err != nil {
		return f.seen != nil
	}
	for i, s := range now {
		if f.seen == nil || s.size != f.seen[i].size || !s.modified.Equal(f.seen[i].modified) {
			return true
		}
	}
	return false
}

// Follow reads the files again whenever they have changed, until ctx ends. Files that are broken are an error in the log, once for each
// change; what they said before stays.
func (f *Files[T]) Follow(ctx context.Context, log *slog.Logger) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if f.changed() {
			f.Report(f.Reload(), log)
		}
	}
}

// Report logs how reading the files again went.
func (f *Files[T]) Report(err error, log *slog.Logger) {
	if err != nil {
		log.Error("a file has changed and cannot be used; what it said before stays", "file", f.paths[0], "error", err)
		return
	}
	log.Info("a file was read again", "file", f.paths[0])
}
