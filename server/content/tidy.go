package content

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/kv"
)

const (
	// OrphanAge is the minimum age of a blob without a transaction that counts as left by a crash: much longer than
	// any request can take.
	OrphanAge = time.Hour
	// page is the number of names per read.
	page = 500
	// garbagePage is the number of names of garbage per read. It is larger, because an external etcd counts all garbage that is left at each read.
	garbagePage = 5000
	// deletionsAtOnce is the number of blobs that are deleted together. A bucket, and a disk that is busy with saves, take
	// milliseconds for each. One after the other, the server would delete fewer blobs than busy documents drop.
	deletionsAtOnce = 32
	// deletionsPerCommit is the number of deletions after which one transaction records them. On a server at its limit, each transaction
	// waits for those of saves, and with fewer deletions in each the garbage would grow.
	deletionsPerCommit = 32
)

// Tidy deletes the blobs of dropped generations, unless a backup holds them. Its cost depends on the number of
// generations dropped since the last call. A blob that cannot be deleted does not keep the others: the next call tries it again.
func (s *Store) Tidy(ctx context.Context) error {
	var failed error
	for after := garbagePrefix; ; {
		entries, err := s.KV.Page(ctx, garbagePrefix, after, garbagePage)
		if err != nil || len(entries) == 0 {
			return cmp.Or(err, failed)
		}
		if held, err := s.held(ctx); err != nil || held {
			return cmp.Or(err, failed)
		}
		after = entries[len(entries)-1].Key
		deleted, err := s.collectAll(ctx, entries, &failed)
		if err != nil || deleted == 0 {
			return cmp.Or(err, failed) // without a deletion, the reason is more than single blobs
		}
	}
}

// collectAll deletes the blobs of garbage entries and then the entries. It fails as collect does, once the deletions that have begun
// are over.
func (s *Store) collectAll(ctx context.Context, entries []kv.Entry, failed *error) (deleted int64, err error) {
	var all atomic.Int64
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(deletionsAtOnce)
	for some := range slices.Chunk(entries, deletionsPerCommit) {
		group.Go(func() error {
			done, single, err := s.collectSome(ctx, some)
			mu.Lock()
			*failed = cmp.Or(*failed, single)
			mu.Unlock()
			all.Add(int64(len(done)))
			if err != nil || len(done) == 0 {
				return err
			}
			_, err = s.KV.Commit(ctx, kv.Txn{Then: done})
			return err
		})
	}
	err = group.Wait()
	return all.Load(), err
}

// collectSome deletes the blobs of garbage entries, and returns the operations that delete the entries.
func (s *Store) collectSome(ctx context.Context, entries []kv.Entry) (done []kv.Op, single, err error) {
	for _, e := range entries {
		deleted, err := s.collect(ctx, strings.TrimPrefix(e.Key, garbagePrefix), &single)
		if err != nil {
			return nil, single, err
		}
		if deleted {
			done = append(done, kv.Delete(e.Key))
		}
	}
	return done, single, nil
}

// collect deletes a blob. If only this blob cannot be deleted, collect sets failed. Its error means that the blob store does
// not answer.
func (s *Store) collect(ctx context.Context, blob string, failed *error) (deleted bool, err error) {
	err = s.Blobs.Delete(ctx, blob)
	switch {
	case err == nil:
		s.Collected()
		return true, nil
	case ctx.Err() != nil, errors.Is(err, blobs.ErrUnavailable):
		return false, err
	}
	*failed = err
	return false, nil
}

// Sweep deletes the blobs that a crash left without a transaction, if they are older than [OrphanAge]. It looks at every blob, so the
// server calls it rarely: at the start, OrphanAge later, and OrphanAge after [Store.Left] reports a failed write. While a backup runs it
// fails with [ErrHeld]. Like Tidy, it does not stop at a blob that cannot be deleted.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	var failed error
	var marks *kv.Lease
	err := s.Blobs.Each(ctx, func(name string) error {
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
		if marks == nil {
			if marks, err = s.KV.Countdown(ctx, OrphanAge); err != nil {
				return err
			}
		}
		if marked, err := s.markSwept(ctx, name, marks); err != nil || !marked {
			return err
		}
		_, err = s.collect(ctx, name, &failed)
		return err
	})
	return cmp.Or(err, failed)
}

// NeedsSweep reports whether a write has failed since the last call, and only Sweep can delete its blob: the transaction may have named the
// blob, or the blob may have come after its deletion.
func (s *Store) NeedsSweep() bool { return s.needsSweep.Swap(false) }

// markSwept marks a blob that no transaction has named, so that each later transaction that names it fails. The blob may be new although it
// looks old, because the clock of its writer may be behind this server's. The marks end with their lease.
func (s *Store) markSwept(ctx context.Context, blob string, marks *kv.Lease) (marked bool, err error) {
	result, err := s.KV.Commit(ctx, kv.Txn{If: []kv.Cond{kv.Absent(blobPrefix + blob)}, Then: []kv.Op{kv.PutBound(sweptPrefix+blob, nil, marks)}})
	return result.Held, err
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
