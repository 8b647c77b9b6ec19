package content

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
)

const (
	// OrphanAge is the minimum age of a blob without a transaction that counts as left by a crash: much longer than
	// any request can take.
	OrphanAge = time.Hour
	// page is the number of names per read.
	page = 500
)

// Tidy deletes the blobs of dropped generations, unless a backup holds them. Its cost depends on the number of
// generations dropped since the last call.
func (s *Store) Tidy(ctx context.Context) error {
	for {
		entries, err := s.KV.Page(ctx, garbagePrefix, garbagePrefix, page)
		if err != nil || len(entries) == 0 {
			return err
		}
		if held, err := s.held(ctx); err != nil || held {
			return err
		}
		var done []kv.Op
		for _, e := range entries {
			if err := s.Blobs.Delete(ctx, strings.TrimPrefix(e.Key, garbagePrefix)); err != nil {
				return err
			}
			s.Collected()
			done = append(done, kv.Delete(e.Key))
			if len(done) == kv.MaxOps || e.Key == entries[len(entries)-1].Key {
				if _, err := s.KV.Commit(ctx, kv.Txn{Then: done}); err != nil {
					return err
				}
				done = nil
			}
		}
	}
}

// Sweep deletes the blobs that a crash left without a transaction, if they are of [OrphanAge]. It looks at every blob, so
// it runs only after a start and OrphanAge later. While a backup runs it fails with [ErrHeld].
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	return s.Blobs.Each(ctx, func(name string) error {
		digest, save, _ := strings.Cut(name, "-")
		saved, ok := savedAt(save)
		if !ok || len(digest) != 64 || now.Sub(saved) < OrphanAge {
			return nil // a foreign blob, or too young
		}
		named, err := s.named(ctx, name)
		if err != nil || named {
			return err
		}
		if held, err := s.held(ctx); err != nil || held {
			return errors.Join(err, ErrHeld)
		}
		if err := s.Blobs.Delete(ctx, name); err != nil {
			return err
		}
		s.Collected()
		return nil
	})
}

// named reports whether a transaction has named a blob.
func (s *Store) named(ctx context.Context, blob string) (bool, error) {
	e, _, err := s.KV.Get(ctx, blobPrefix+blob)
	return e.Found(), err
}

func savedAt(save string) (time.Time, bool) {
	ms, _, ok := strings.Cut(save, "-")
	n, err := strconv.ParseInt(ms, 36, 64)
	return time.UnixMilli(n), ok && err == nil
}

// chunkPrefix is the prefix under which a former version of this server kept contents, in pieces under
// <document>/<save>/.
const chunkPrefix = "chunks/"

// openChunks reads a content that a former version saved. The next save moves it into a blob.
func (s *Store) openChunks(ctx context.Context, document string, d description) (io.ReadSeekCloser, error) {
	chunks, _, err := s.KV.Range(ctx, chunkPrefix+document+"/"+d.Save+"/")
	if err != nil {
		return nil, err
	}
	data := make([]byte, 0, d.Size)
	for _, c := range chunks {
		data = append(data, c.Value...)
	}
	if len(data) == d.Size {
		return readCloser{bytes.NewReader(data)}, nil
	}
	if now, _, err := s.KV.Get(ctx, prefix+document); err == nil {
		if present, err := decode(now); err != nil || present.Save != d.Save {
			return nil, errors.Join(ErrNotFound, err) // a later content has replaced it
		}
	}
	return nil, fmt.Errorf("the content of %q is damaged: %d of %d bytes", document, len(data), d.Size)
}

type readCloser struct{ io.ReadSeeker }

func (readCloser) Close() error { return nil }
