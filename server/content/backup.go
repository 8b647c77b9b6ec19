package content

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/server/kv"
)

const (
	// holdPrefix is the prefix of a key for each backup that runs. While there is one, no server deletes the blob of
	// a dropped generation.
	holdPrefix = "holds/"
	// holdTTL is how long a hold outlives its server.
	holdTTL = 30 * time.Second
)

// ErrHoldLost means that the store was away for so long that blobs may have been deleted in spite of a hold.
var ErrHoldLost = errors.New("the store was away for too long, so contents may be missing")

// ErrHeld means that a backup runs, so blobs stay.
var ErrHeld = errors.New("a backup runs, so nothing is deleted")

// Hold keeps every server from deleting blobs that a transaction after this call names, or has named before and not
// dropped yet. It lasts until release is called or this process ends. intact reports whether it has lasted.
func (s *Store) Hold(ctx context.Context) (intact func() error, release func(), err error) {
	lease, err := s.KV.Lease(ctx, holdTTL)
	if err != nil {
		return nil, nil, err
	}
	release = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), holdTTL)
		defer cancel()
		_ = lease.Close(ctx) // if it fails, the hold ends by itself
	}
	// A server reads which blobs are garbage before it looks for holds. So the blobs that it deletes in spite of this
	// hold were dropped before this commit.
	if _, err := s.KV.Commit(ctx, kv.Txn{Then: []kv.Op{kv.PutBound(holdPrefix+rand.Text(), nil, lease)}}); err != nil {
		release()
		return nil, nil, err
	}
	return func() error {
		if wait.Closed(lease.Lost()) {
			return ErrHoldLost
		}
		return nil
	}, release, nil
}

// held reports whether a backup holds the blobs.
func (s *Store) held(ctx context.Context) (bool, error) {
	holds, err := s.KV.Count(ctx, holdPrefix)
	return holds > 0, err
}

// EachBlob calls f with the names of all blobs of generations, also of dropped ones, and of the mark, see [Store.Bind].
// Under a hold these are at least those that were named when EachBlob was called. f may get a name twice. kept reports
// whether the generation was not dropped.
func (s *Store) EachBlob(ctx context.Context, f func(name string, kept bool) error) error {
	mark, _, err := s.KV.Get(ctx, homeKey)
	if err == nil && mark.Found() {
		err = f(string(mark.Value), true)
	}
	if err != nil {
		return err
	}
	// A dropped generation moves from the first prefix to the second, so it is found under one of them.
	for _, under := range []string{blobPrefix, garbagePrefix} {
		for after := under; ; {
			entries, err := s.KV.Page(ctx, under, after, page)
			if err != nil {
				return err
			}
			for _, e := range entries {
				if err := f(strings.TrimPrefix(e.Key, under), under == blobPrefix); err != nil {
					return err
				}
				after = e.Key
			}
			if len(entries) < page {
				break
			}
		}
	}
	return nil
}

// Matches reports whether the SHA-256 of a blob's bytes is that of its name. A name without one matches any bytes.
func Matches(name string, sum []byte) bool {
	digest, _, _ := strings.Cut(name, "-")
	return len(digest) != hex.EncodedLen(sha256.Size) || digest == hex.EncodeToString(sum)
}
