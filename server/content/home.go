package content

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/kv"
)

// homeKey holds the name of a blob that marks the blob store of this store of names.
const homeKey = "contents-home"

// Bind makes sure that the blobs belong to the names: a server with another directory or bucket than the rest would save contents
// that nobody else finds. The first server leaves a mark among the blobs, and each later one looks for it. A server that has the store
// for itself makes a missing mark again while there are no contents.
func (s *Store) Bind(ctx context.Context) error {
	mark, err := s.mark(ctx)
	if errors.Is(err, blobs.ErrFull) || errors.Is(err, kv.ErrFull) {
		return nil // the next start makes the mark
	}
	if err != nil {
		return err
	}
	r, err := s.Blobs.Open(ctx, mark)
	if err == nil {
		return r.Close()
	}
	if !errors.Is(err, blobs.ErrNotFound) {
		return err
	}
	names, err := s.KV.Page(ctx, prefix, prefix, 1)
	if err != nil {
		return err
	}
	if len(names) > 0 || !s.KV.Alone() {
		return fmt.Errorf("--blobs is not where the contents of this store are: their mark %s is missing there. "+
			"Name the directory or bucket that the other servers have, or restore the blobs from a backup", mark)
	}
	return s.Blobs.Put(ctx, mark, nil)
}

// mark returns the name of the mark. It makes the mark where there is none.
func (s *Store) mark(ctx context.Context) (string, error) {
	e, _, err := s.KV.Get(ctx, homeKey)
	if err != nil || e.Found() {
		return string(e.Value), err
	}
	name := "00-home-" + strings.ToLower(rand.Text())
	if err := s.Blobs.Put(ctx, name, nil); err != nil {
		return "", err
	}
	result, err := s.KV.Commit(ctx, kv.Txn{
		If:   []kv.Cond{kv.Absent(homeKey)},
		Then: []kv.Op{kv.Put(homeKey, []byte(name))}, Else: []kv.Op{kv.Read(homeKey)},
	})
	if err != nil || result.Held {
		return name, err
	}
	_ = s.Blobs.Delete(ctx, name) // a mark that nobody looks for does no harm
	return string(result.Reads[0][0].Value), nil
}
