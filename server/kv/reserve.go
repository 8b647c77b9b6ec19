package kv

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
)

// The embedded etcd ends the process when a write of its log, its snapshot or its database finds the disk full. So
// the server reserves space for all three, and contents never use it:
//
//   - The server refuses contents while less than [diskReserve] is free.
//   - A reserve file holds the blocks of one more log segment. The server deletes it when other programs fill the disk.
//   - The server then also removes the segments that no snapshot needs. Snapshots are more frequent than full segments, so each new
//     segment frees an old one.
//   - The database has its blocks in advance, and the server compacts its history so that pages become free.
//
// One case remains: if other programs immediately take this space too, and there is none when etcd writes, the process ends. No
// acknowledged change is lost. If there is space again by then, [nextSegment] has allocated the segment.

// These sizes are variables because tests make them smaller.
var (
	// growth is how much the database may still grow on a full disk.
	growth int64 = 32 << 20
	// snapshotCount is the number of log entries between two snapshots. An entry of heartbeats has about 30 KB.
	snapshotCount uint64 = 1000
)

const (
	// reserveName is the reserve file in the data directory.
	reserveName = "reserve"
	// keptSegments is the maximum number of log segments to keep that no snapshot needs, including the current one.
	keptSegments = 2
	// keptSnapshots is the maximum number of snapshots to keep: as many as etcd keeps by default.
	keptSnapshots = embed.DefaultMaxSnapshots
)

// diskReserve is the free disk space below which the server refuses contents: the next log segment with its
// successor, and the growth of the database.
func diskReserve() int64 { return 2*wal.SegmentSizeBytes + growth }

// fileReserve is the number of free files on the disk below which the server refuses contents, each of which is a file. The store needs a few
// for its log and its snapshots, and ends the process without them.
const fileReserve = 1000

// fewFiles reports whether a disk has room for fewer files than a multiple of fileReserve.
func fewFiles(files, times int64) bool { return files >= 0 && files < times*fileReserve }

// reserveSize is the size of the reserve file: one segment, the small snapshots, and the entries that exceed a
// segment.
func reserveSize() int64 { return wal.SegmentSizeBytes + 4<<20 }

// short reports whether so little space is left that the reserve file must go.
func short(free int64) bool {
	return free >= 0 && free < wal.SegmentSizeBytes+wal.SegmentSizeBytes/2
}

// makeRoom deletes the reserve file on a full disk before etcd starts, because etcd then allocates the next log segment. It begins with 0.tmp, so
// the other one only takes space.
func makeRoom(dir string) error {
	if !short(freeOn(dir)) {
		return nil
	}
	drop(repaired(dir))
	for _, path := range []string{reserveName, filepath.Join("member", "wal", "1.tmp")} {
		if err := os.Remove(filepath.Join(dir, path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// mayShrink reports whether the disk has space for a smaller copy of the database. With less, etcd fails to copy, and does not start.
func mayShrink(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, "member", "snap", "db"))
	free := freeOn(dir)
	return err == nil && (free < 0 || free-info.Size() >= diskReserve())
}

// repaired returns the copies of log segments that etcd makes before it repairs them, and never removes. A copy has nothing acknowledged that
// the repaired segment lacks, see [checkLog]. It stays until a later start has succeeded nevertheless, unless the disk is full.
func repaired(dir string) []string {
	copies, _ := filepath.Glob(filepath.Join(dir, "member", "wal", "*.broken"))
	return copies
}

func drop(files []string) {
	for _, path := range files {
		_ = os.Remove(path) // the next start tries again
	}
}

// hold keeps the reserve file while there is space beyond diskReserve for it, apart from the next log segment, which etcd
// allocates a little after a segment begins. It deletes the file when other programs have filled the disk.
func (k *spaceMaintainer) hold(r Space) error {
	path := filepath.Join(k.dir, reserveName)
	switch {
	case r.Free < 0:
		return nil
	case short(r.Free):
		k.holds = false
		drop(repaired(k.dir))
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	case k.holds || r.Free < diskReserve()+reserveSize():
		return nil
	}
	next, err := filepath.Glob(filepath.Join(k.dir, "member", "wal", "*.tmp"))
	if err != nil || !slices.ContainsFunc(next, allocated) {
		return err
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

// allocated reports whether a log segment has all its blocks.
func allocated(segment string) bool {
	info, err := os.Stat(segment)
	return err == nil && info.Size() >= wal.SegmentSizeBytes
}

// prune removes old snapshots and the log segments that no snapshot needs, almost all of them if little space is left. etcd removes none here
// ([etcdConfig]): it would end if one of them were gone already. The snapshot before the latest stays, because etcd may still be writing the latest.
func (k *spaceMaintainer) prune(r Space) error {
	snapshots, segments := uint(keptSnapshots), uint(keptSegments)
	if short(r.Free) {
		snapshots, segments = 2, 1
	}
	return errors.Join(k.drop("snap", "snap", snapshots), k.drop("snap", "snap.db", snapshots), k.drop("wal", "wal", segments))
}

// drop removes the oldest files and keeps a number of them. It keeps log segments that are in use.
func (k *spaceMaintainer) drop(folder, suffix string, keep uint) error {
	stop := make(chan struct{})
	close(stop) // after one pass
	done, failed := fileutil.PurgeFileWithDoneNotify(zap.NewNop(), filepath.Join(k.dir, "member", folder), suffix, keep, time.Hour, stop)
	<-done
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}
