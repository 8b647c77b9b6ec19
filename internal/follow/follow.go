// Package follow keeps the contents of files up to date while a program runs: it reads changed files again within seconds. If they cannot be
// read or parsed, the last readable contents stay.
package follow

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// every is the interval at which files are checked. A check of an unchanged file reads only its metadata.
const every = 2 * time.Second

// Files are files that are read together, such as a certificate and its key. current is the last readable version.
type Files[T any] struct {
	paths   []string
	parse   func(texts ...[]byte) (T, error)
	current atomic.Pointer[T]

	mu   sync.Mutex // guards the fields below
	seen []stamp    // as they were read
	last []stamp    // as they were at the last check
}

// stamp identifies one version of a file.
type stamp struct {
	modified time.Time
	size     int64
}

func (s stamp) equal(other stamp) bool {
	return s.size == other.size && s.modified.Equal(other.modified)
}

// Open reads files. It fails with an error that names the file if a file cannot be read or parsed.
func Open[T any](parse func(texts ...[]byte) (T, error), paths ...string) (*Files[T], error) {
	f := &Files[T]{paths: paths, parse: parse}
	return f, f.Reload()
}

// Get returns the current value of the files.
func (f *Files[T]) Get() T { return *f.current.Load() }

// Reload reads the files again. After an error the previous value stays.
func (f *Files[T]) Reload() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen, err := f.stamps() // taken before reading, so that the next check sees a change in between
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

// changed reports whether the files have changed since they were read, and are the same as at the last check: a program that
// writes a file in place may be halfway.
func (f *Files[T]) changed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, err := f.stamps()
	if err != nil {
		f.last = nil
		return f.seen != nil
	}
	rests := slices.EqualFunc(now, f.last, stamp.equal)
	f.last = now
	return rests && !slices.EqualFunc(now, f.seen, stamp.equal)
}

// Lines parses texts whose lines have fields with blanks between them; a # begins a comment. It calls parse with the fields
// of each line that has any. Its errors name the line.
func Lines(texts [][]byte, parse func(fields []string) error) error {
	lines := bufio.NewScanner(bytes.NewReader(bytes.Join(texts, []byte("\n"))))
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		if err := parse(fields); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return lines.Err()
}

// Follow reads the files again whenever they change, until ctx ends, and passes the result to report: an error comes once
// for each broken version, and the previous value stays.
func (f *Files[T]) Follow(ctx context.Context, report func(error)) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if f.changed() {
			report(f.Reload())
		}
	}
}

// Name is the name of the first file.
func (f *Files[T]) Name() string { return f.paths[0] }

// Report logs the result of a reload.
func (f *Files[T]) Report(err error, log *slog.Logger) {
	if err != nil {
		log.Error("a changed file cannot be used; its previous contents stay in use", "file", f.paths[0], "error", err)
		return
	}
	log.Info("a file was read again", "file", f.paths[0])
}
