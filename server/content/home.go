package content

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/kv"
)

// homeKey holds the name of a blob, the mark. The mark shows that the blob store belongs to this store of names.
const (
	homeKey    = "contents-home"
	homePrefix = "00-home-"
	// plannedKey holds the name until the mark is there. So a server that is stopped between the two, or another server
	// of the same store, knows the mark as its own.
	plannedKey = "contents-home-planned"
)

// Bind checks that the blobs belong to the names. A server with another directory or bucket than the others would
// save contents that they cannot find. The first server leaves a mark among the blobs, and each later one looks for
// it. A server that is alone recreates a missing mark while there are no contents. No server accepts the mark of another store.
func (s *Store) Bind(ctx context.Context) error {
	mark, err := s.mark(ctx)
	if errors.Is(err, blobs.ErrFull) || errors.Is(err, kv.ErrFull) {
		return nil // the next start makes the mark
	}
	if err != nil {
		return err
	}
	if err := OnlyMark(ctx, s.Blobs, mark); err != nil {
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
	if len(names) > 0 || !s.KV.SingleServer() {
		return fmt.Errorf("--blobs does not have the contents of this store: their mark %s is missing. "+
			"Use the same directory or bucket as the other servers, or restore the blobs from a backup", mark)
	}
	return s.Blobs.Put(ctx, mark, nil)
}

// errLast ends a look at the marks.
var errLast = errors.New("no mark follows")

// OnlyMark fails if the blobs have a mark other than the own one: [Store.Sweep] of each store would delete the contents of the other.
func OnlyMark(ctx context.Context, all blobs.Blobs, own string) error {
	err := all.Each(ctx, func(name string) error {
		switch {
		case name == own:
			return nil
		case !strings.HasPrefix(name, homePrefix): // it sorts after all marks
			return errLast
		}
		return fmt.Errorf("--blobs belongs to another store, whose mark is %s. Name another directory or bucket. "+
			"If the servers of that store never start again, remove its mark", name)
	})
	if errors.Is(err, errLast) {
		return nil
	}
	return err
}

// mark returns the name of the mark, and creates the mark if it does not exist.
func (s *Store) mark(ctx context.Context) (string, error) {
	e, _, err := s.KV.Get(ctx, homeKey)
	if err != nil || e.Found() {
		return string(e.Value), err
	}
	name, err := s.planned(ctx)
	if err != nil {
		return "", err
	}
	if err := s.refuseForeign(ctx, name); err != nil {
		return "", err
	}
	if err := s.Blobs.Put(ctx, name, nil); err != nil {
		return "", err
	}
	if err := s.refuseForeign(ctx, name); err != nil { // another store began at the same time
		return "", err
	}
	_, err = s.KV.Commit(ctx, kv.Txn{
		If:   []kv.Cond{kv.Absent(homeKey)},
		Then: []kv.Op{kv.Put(homeKey, []byte(name)), kv.Delete(plannedKey)},
	})
	return name, err
}

// planned returns the name of the mark on which all servers of the store agree.
func (s *Store) planned(ctx context.Context) (string, error) {
	name := homePrefix + strings.ToLower(rand.Text())
	result, err := s.KV.Commit(ctx, kv.Txn{
		If:   []kv.Cond{kv.Absent(homeKey), kv.Absent(plannedKey)},
		Then: []kv.Op{kv.Put(plannedKey, []byte(name))}, Else: []kv.Op{kv.Read(homeKey), kv.Read(plannedKey)},
	})
	if err != nil || result.Held {
		return name, err
	}
	return string(slices.Concat(result.Reads...)[0].Value), nil
}

// refuseForeign fails if the blobs have contents or a mark other than the own one although the store of names is new:
// they belong to another store, and [Store.Sweep] of each would delete the contents of the other.
func (s *Store) refuseForeign(ctx context.Context, own string) error {
	names, err := s.KV.Page(ctx, prefix, prefix, 1)
	if err != nil || len(names) > 0 {
		return err
	}
	return s.Blobs.Each(ctx, func(name string) error {
		if name == own {
			return nil
		}
		return fmt.Errorf("--blobs has contents of another store, for instance %s, and this store is new. "+
			"Let the server --join the cluster that owns them, restore a backup, or name an empty directory or bucket", name)
	})
}
