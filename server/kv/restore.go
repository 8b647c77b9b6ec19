package kv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/holdfast-dev/holdfast/internal/disk"
)

const (
	// markName is the name of the file that marks a data directory while a restore writes to it.
	markName = "RESTORING"
	// lostAndFound is the folder that an empty file system may have.
	lostAndFound = "lost+found"
)

// ErrNotEmpty means that a restore found files in the data directory.
var ErrNotEmpty = errors.New("the data directory is not empty")

// Restoration is a restore into an empty data directory. Until [Restoration.Finish], [Open] refuses the directory,
// also after a crash.
type Restoration struct {
	dir string
	log *slog.Logger
}

// BeginRestore creates the directory if it is missing. It fails with [ErrNotEmpty].
func BeginRestore(dir string, log *slog.Logger) (*Restoration, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the data directory cannot be made: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("the data directory cannot be read: %w", err)
	}
	if err := checkUnmarked(dir); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotEmpty, err)
	}
	for _, e := range entries {
		if e.Name() != lostAndFound {
			return nil, fmt.Errorf("%w: %s contains %s; choose another directory with --data-dir", ErrNotEmpty, dir, e.Name())
		}
	}
	mark, err := os.OpenFile(filepath.Join(dir, markName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = errors.Join(mark.Close(), disk.Sync(dir))
	}
	if err != nil {
		return nil, fmt.Errorf("the data directory cannot be written: %w", err)
	}
	return &Restoration{dir, log}, nil
}

// checkUnmarked refuses a directory with an unfinished restore.
func checkUnmarked(dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, markName)); err == nil {
		return fmt.Errorf("a restore into %s has not finished; remove the files of the directory and restore again", dir)
	}
	return nil
}

// Store restores the store from a file in the format of [Store.Snapshot]. The revision of the restored store is that
// of the snapshot plus bump, and its history is compacted. The store is a cluster of one.
func (r *Restoration) Store(file string, bump uint64) (err error) {
	defer func() {
		p := recover() // etcd panics on some damaged databases
		reason, _ := p.(error)
		switch refusal := errors.Join(err, reason); {
		case isRefusal(refusal):
			err = fmt.Errorf("the store cannot be restored: %w; fix the cause, remove the files in %s and restore again", refusal, r.dir)
		case p != nil:
			err = fmt.Errorf("the copy of the store is damaged: %v", p)
		case err != nil:
			err = fmt.Errorf("the copy of the store cannot be restored: %w", err)
		}
	}()
	settings := embed.NewConfig()
	made := filepath.Join(r.dir, "restored")
	err = snapshot.NewV3(zapOver(r.log, nil)).Restore(snapshot.RestoreConfig{
		SnapshotPath: file, OutputDataDir: made, Name: defaultName,
		PeerURLs:       []string{settings.AdvertisePeerUrls[0].String()},
		InitialCluster: settings.InitialClusterFromName(defaultName), InitialClusterToken: settings.InitialClusterToken,
		RevisionBump: bump, MarkCompacted: bump > 0,
	})
	if err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(made, "member"), filepath.Join(r.dir, "member")); err != nil {
		return err
	}
	return os.Remove(made)
}

// Look opens the restored store for f.
func (r *Restoration) Look(ctx context.Context, f func(*Store) error) error {
	s, err := Open(ctx, Config{DataDir: r.dir, Log: r.log, restoring: true})
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.Close())
}

// Finish makes everything durable and allows [Open] to use the directory.
func (r *Restoration) Finish() error {
	for _, path := range []string{filepath.Join("member", "snap"), filepath.Join("member", "wal"), "member", "."} {
		if err := disk.Sync(filepath.Join(r.dir, path)); err != nil {
			return err
		}
	}
	return errors.Join(os.Remove(filepath.Join(r.dir, markName)), disk.Sync(r.dir))
}
