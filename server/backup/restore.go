package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/kv"
)

const (
	// fastest is an upper bound of the revisions that a store makes in a second. Clients have seen no higher token
	// than that of the backup plus as many as fit into the time since then.
	fastest = 100_000
	// spare covers clocks that differ by some hours.
	spare = 1_000_000_000
)

// Restore restores an archive into an empty data directory, with the contents at a place as [blobs.Open] takes it; an
// empty place is the directory of contents in the data directory. It fails with [kv.ErrNotEmpty], [ErrDamaged] and
// [ErrNewer]. Until it has succeeded, no server starts on the directory.
func Restore(ctx context.Context, from io.Reader, dir, place string, log *slog.Logger) (Summary, error) {
	r, err := kv.BeginRestore(dir, log)
	if err != nil {
		return Summary{}, err
	}
	if place == "" {
		place = filepath.Join(dir, "blobs")
	}
	to := &restore{ctx: ctx, seen: map[string]bool{}}
	if to.blobs, err = blobs.Open(ctx, place); err != nil {
		return Summary{}, err
	}
	path := filepath.Join(dir, "snapshot")
	if to.snapshot, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return Summary{}, err
	}
	sum, err := read(from, to)
	if err := errors.Join(err, to.snapshot.Close()); err != nil {
		return sum, err
	}
	if err := r.Store(path, bump(sum.At, time.Now())); err != nil {
		return sum, err
	}
	if err := os.Remove(path); err != nil {
		return sum, err
	}
	if err := r.Look(ctx, func(s *kv.Store) error { return to.compare(s, sum) }); err != nil {
		return sum, err
	}
	return sum, r.Finish()
}

// bump returns how far the revision must rise so that it passes every revision that the lost store has made.
func bump(at, now time.Time) uint64 {
	return spare + uint64(max(0, now.Sub(at).Seconds())*fastest)
}

// restore receives an archive.
type restore struct {
	ctx      context.Context
	snapshot *os.File
	blobs    blobs.Blobs
	seen     map[string]bool
}

func (r *restore) store(piece io.Reader) error {
	_, err := io.Copy(r.snapshot, piece)
	return err
}

func (r *restore) blob(name string, data io.Reader) error {
	bytes, err := io.ReadAll(data)
	if err != nil {
		return err
	}
	if len(r.seen) == 0 { // the first blob of an archive is the mark
		if err := content.OnlyMark(r.ctx, r.blobs, name); err != nil {
			return err
		}
	}
	r.seen[name] = true
	return r.blobs.Put(r.ctx, name, bytes)
}

// compare checks that the archive has every content that the store names.
func (r *restore) compare(s *kv.Store, sum Summary) error {
	for _, name := range sum.Missing {
		r.seen[name] = true // lost before the backup
	}
	contents := content.New(content.Config{KV: s})
	return contents.EachBlob(r.ctx, func(name string, kept bool) error {
		if kept && !r.seen[name] {
			return damaged("it does not have the content %s", name)
		}
		return nil
	})
}

// String is one sentence. One of the files is the mark of the store of contents.
func (s Summary) String() string {
	return fmt.Sprintf("%d files with %d bytes of contents, and a store of %d bytes, of %s", s.Blobs, s.BlobBytes, s.StoreBytes, s.At.UTC().Format(time.RFC3339))
}
