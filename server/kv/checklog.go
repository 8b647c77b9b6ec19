package kv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"google.golang.org/protobuf/proto"
)

// checkLog fails if the log of a cluster of one ends before the last entry that its database contains. etcd cuts the log at a damaged
// place, as if the power had failed there. Then it would skip as many entries as it takes the log to catch up, and acknowledged changes
// would be lost, those in the damaged part too. The check changes no file, so it fails at each start.
func checkLog(dir string, applied uint64) error {
	last, err := logEnd(dir)
	if err == nil && last < applied {
		err = errors.New("member/wal ends before the database does")
	}
	return err
}

// logEnd returns the index of the last entry that etcd would read from its log: it repairs only the last segment.
func logEnd(dir string) (last uint64, err error) {
	segments, err := filepath.Glob(filepath.Join(dir, "*.wal")) // in order
	if err != nil || len(segments) == 0 {
		return 0, err
	}
	path := segments[len(segments)-1]
	var number, first uint64
	if _, err := fmt.Sscanf(filepath.Base(path), "%016x-%016x.wal", &number, &first); err != nil {
		return 0, fmt.Errorf("member/wal has %s: %w", filepath.Base(path), err)
	}
	if last = first; first > 0 {
		last--
	}
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	log, record := wal.NewDecoder(fileutil.NewFileReader(file)), &walpb.Record{}
	for log.Decode(record) == nil { // etcd reports what is wrong with a record that is no end
		switch record.GetType() {
		case wal.CrcType:
			log.UpdateCRC(record.GetCrc())
		case wal.EntryType:
			last = wal.MustUnmarshalEntry(record.GetData()).GetIndex()
		case wal.SnapshotType: // from another member, when there were several, it comes instead of entries
			var snapshot walpb.Snapshot
			if err := proto.Unmarshal(record.GetData(), &snapshot); err != nil {
				return 0, err
			}
			last = max(last, snapshot.GetIndex())
		}
	}
	return last, nil
}
