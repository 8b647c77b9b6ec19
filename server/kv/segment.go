package kv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"unsafe"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
)

// nextSegment is the place in etcd's log where the next segment comes from. etcd allocates it in advance, in a goroutine that ends at the
// first error, such as that of a full disk. etcd finds the error when it needs the segment, perhaps hours later, and ends the process, however much
// space there is by then. No call of etcd begins the allocation again, so nextSegment does it in etcd's own fields, see
// docs/adr/0068-the-next-segment-of-the-log.md.
type nextSegment struct {
	dir    string
	mu     *sync.Mutex     // of the log
	source *unsafe.Pointer // the log's field for a *wal.filePipeline
	kind   reflect.Type    // wal.filePipeline
}

// newPipeline begins to allocate segments in a folder.
//
//go:linkname newPipeline go.etcd.io/etcd/server/v3/storage/wal.newFilePipeline
func newPipeline(log *zap.Logger, dir string, size int64) unsafe.Pointer

// nextSegmentOf finds the field. It fails with a version of etcd that has other fields.
func nextSegmentOf(e *embed.Etcd, dir string) (n *nextSegment, err error) {
	defer func() {
		if p := recover(); p != nil {
			n, err = nil, fmt.Errorf("etcd has other fields than expected: %v", p)
		}
	}()
	storage := reflect.ValueOf(e.Server).Elem().FieldByName("r").FieldByName("storage").Elem().Elem()
	log := reflect.NewAt(reflect.TypeFor[wal.WAL](), storage.FieldByName("w").UnsafePointer()).Elem()
	mu, source := log.FieldByName("mu"), log.FieldByName("fp")
	n = &nextSegment{
		dir: filepath.Join(dir, "member", "wal"), kind: source.Type().Elem(),
		mu: (*sync.Mutex)(mu.Addr().UnsafePointer()), source: (*unsafe.Pointer)(source.Addr().UnsafePointer()),
	}
	if storage.FieldByName("w").Type() != reflect.TypeFor[*wal.WAL]() || mu.Type() != reflect.TypeFor[sync.Mutex]() || n.pending().Type() != reflect.TypeFor[chan error]() {
		return nil, errors.New("etcd has fields of other types than expected")
	}
	return n, nil
}

// pending is the channel that has an error after the allocation has failed.
func (n *nextSegment) pending() reflect.Value {
	return reflect.NewAt(n.kind, *n.source).Elem().FieldByName("errc")
}

// retry begins the allocation again if it has failed. It does nothing while less space is free than a segment takes, and nothing if n is nil.
func (n *nextSegment) retry(free int64) error {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if *n.source == nil || n.pending().Len() == 0 || free >= 0 && free < wal.SegmentSizeBytes {
		return nil
	}
	for _, name := range []string{"0.tmp", "1.tmp"} { // nobody uses them any more
		if err := os.Remove(filepath.Join(n.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	*n.source = newPipeline(zap.NewNop(), n.dir, wal.SegmentSizeBytes)
	return nil
}
