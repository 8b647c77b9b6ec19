package simulation

import (
	"bytes"
	"context"
	"io"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/server/blobs"
)

// memoryBlobs are [blobs.Blobs] in memory.
type memoryBlobs struct {
	mu  sync.Mutex
	all map[string][]byte
}

func newMemoryBlobs() *memoryBlobs { return &memoryBlobs{all: make(map[string][]byte)} }

// Put implements [blobs.Blobs].
func (b *memoryBlobs) Put(_ context.Context, name string, data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all[name] = bytes.Clone(data)
	return nil
}

// Open implements [blobs.Blobs].
func (b *memoryBlobs) Open(_ context.Context, name string) (io.ReadSeekCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	data, ok := b.all[name]
	if !ok {
		return nil, blobs.ErrNotFound
	}
	return reader{bytes.NewReader(data)}, nil
}

type reader struct{ *bytes.Reader }

func (reader) Close() error { return nil }

// Delete implements [blobs.Blobs].
func (b *memoryBlobs) Delete(_ context.Context, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.all, name)
	return nil
}

// Each implements [blobs.Blobs].
func (b *memoryBlobs) Each(_ context.Context, f func(name string) error) error {
	b.mu.Lock()
	names := make([]string, 0, len(b.all))
	for name := range b.all {
		names = append(names, name)
	}
	b.mu.Unlock()
	slices.Sort(names)
	for _, name := range names {
		if err := f(name); err != nil {
			return err
		}
	}
	return nil
}
