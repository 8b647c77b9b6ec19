package kv

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
)

// The embedded etcd ends the process when a write of its log, its snapshot or its database finds the disk full. So this server keeps
// room for all three, and contents never take it:
//
//   - Contents are refused while less than [diskReserve] is free.
//   - A reserve file holds the blocks of one more segment of the log. When other programs fill the disk, the server gives it up.
//   - Then it also removes the segments that no snapshot needs. A snapshot is taken more often than a segment fills, so one segment
//     becomes free for each that the log takes.
//   - The database has its blocks ahead of time, and its history is forgotten, so that pages become free.
//
// What remains: programs that take this room too, as soon as it is free, end the process. Nothing acknowledged is lost then.

// The sizes. Tests make them smaller.
var (
	// growth is how much larger than it is the database may get on a disk that is full.
	growth int64 = 32 << 20
	// snapshotCount is how many entries of the log come between two snapshots. Entries of heartbeats have some 30 KB.
	snapshotCount uint64 = 1000
)

const (
	// reserveName is the reserve file in the data directory.
	reserveName = "reserve"
	// keptSegments is how many segments of the log are kept that no snapshot needs, at most, the present one included.
	keptSegments = 2
)

// diskReserve is what must be free on the disk for contents to be taken: the store's next segment of the log with its successor, and
// growth of the database.
func diskReserve() int64 { return 2*wal.SegmentSizeBytes + growth }

// reserveSize is the size of the reserve file: a segment, snapshots, which are small, and the entries that exceed a segment.
func reserveSize() int64 { return wal.SegmentSizeBytes + 4<<20 }

// hold keeps the reserve file while there is room for it beside what contents leave, and gives it up when other programs have filled
// the disk.
func (k *keeper) hold(r Room) error {
	path := filepath.Join(k.dir, reserveName)
	switch {
	case r.Free < 0:
		return nil
	case r.Free < wal.SegmentSizeBytes+wal.SegmentSizeBytes/2:
		k.holds = false
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return errors.Join(k.drop("wal", "wal"), k.drop("snap", "snap"))
	case k.holds || r.Free < diskReserve()+reserveSize():
		return nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(file.Close(), reserveBlocks(path, reserveSize())); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	k.holds = true
	return nil
}

// drop removes the segments of the log that no snapshot needs, or the snapshots but the latest. Etcd does so every 30 s, and keeps more.
func (k *keeper) drop(folder, suffix string) error {
	stop := make(chan struct{})
	close(stop) // after one look
	done, failed := fileutil.PurgeFileWithDoneNotify(zap.NewNop(), filepath.Join(k.dir, "member", folder), suffix, 1, time.Hour, stop)
	<-done
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}
