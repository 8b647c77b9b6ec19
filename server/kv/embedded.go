package kv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/holdfast-dev/holdfast/internal/wait"
)

// defragMegabytes is how much free space inside the database file makes a start shrink it. Tests change it.
var defragMegabytes uint = 256

const (
	// socketName is the name of the socket in the data directory. etcd's own tools reach the store through it.
	socketName = "etcd.sock"
	// catchUp is how many log entries a member without followers keeps in memory. With etcd's default of 5000,
	// entries with dozens of heartbeats each take 25 MB after some minutes.
	catchUp = 100
	// memberCatchUp is catchUp for a member of several. A follower that is further behind receives the database
	// instead of the entries. An entry with a full batch of heartbeats has about 30 KB, so these take at most 60
	// MB. An entry with a large room has up to 1 MiB.
	memberCatchUp = 2000
	// maxSocketPath is the length of a socket path that works on every system.
	maxSocketPath = 100
)

// embedded is the etcd in this process and everything that close must release.
type embedded struct {
	etcd    *embed.Etcd
	lock    *fileutil.LockedFile
	dir     string
	single  bool
	taken   atomic.Int64 // bytes of contents that are being written
	closing atomic.Bool
	failed  chan error // has room for one
	space   atomic.Pointer[Space]
	copies  []string // of log segments that an earlier start has repaired
	keeping func()   // stops the maintenance of its space
	temp    string   // the directory of the socket if the data directory's path is too long for one
}

func openEmbedded(ctx context.Context, c Config) (*Store, error) {
	dir, err := filepath.Abs(c.DataDir)
	if err != nil {
		return nil, err
	}
	e := &embedded{dir: dir, single: c.Member.PeerURL == "", failed: make(chan error, 1)}
	e.space.Store(&Space{Quota: c.Quota, Free: -1, Files: -1})
	if !c.restoring {
		if err := checkUnmarked(dir); err != nil {
			return nil, err
		}
	}
	if err := e.occupy(dir); err != nil {
		return nil, err
	}
	socket, err := e.socket(dir)
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	settings := etcdConfig(c, dir, socket)
	settings.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zapOver(c.Log, &e.closing))
	if err := joinCluster(ctx, c, dir, settings); err != nil {
		return nil, errors.Join(err, e.close())
	}
	if err = e.start(c, settings); err != nil {
		return nil, errors.Join(err, e.close())
	}
	if err := e.ready(ctx); err != nil {
		return nil, errors.Join(err, e.close())
	}
	drop(e.copies)
	go e.reportEnd()
	// Calls in the process need a third of the time and of the CPU of gRPC over the socket. The interface is the
	// same.
	s := OverServer(e.etcd.Server)
	s.embedded, s.endpoint, s.timeout = e, "unix:"+socket, c.Timeout
	e.keepSpace(s, dir, c)
	if err := s.announce(ctx, c.Member.PeerURL); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// errNoRoom is the reason of a start that fails while the disk is full. etcd does not say so if it cannot make the copy of a log that it repairs.
var errNoRoom = errors.New("its disk has too little free space")

// start starts etcd. With damaged files etcd panics or ends the process; start returns an error instead.
func (e *embedded) start(c Config, settings *embed.Config) (err error) {
	defer func() {
		if p := recover(); p != nil {
			reason, ok := p.(error)
			if !ok {
				reason = fmt.Errorf("%v", p)
			}
			if short(freeOn(settings.Dir)) {
				reason = fmt.Errorf("%w: %w", errNoRoom, reason)
			}
			err = unusable(c.DataDir, reason)
		}
	}()
	applied, err := checkDatabase(filepath.Join(settings.Dir, "member", "snap", "db"))
	if err == nil && e.single {
		err = checkLog(filepath.Join(settings.Dir, "member", "wal"), applied)
	}
	if err != nil {
		return unusable(c.DataDir, err)
	}
	if err := makeRoom(settings.Dir); err != nil {
		return err
	}
	if !mayShrink(settings.Dir) {
		settings.BootstrapDefragThresholdMegabytes = 0
	}
	e.copies = repaired(settings.Dir)
	e.etcd, err = embed.StartEtcd(settings)
	if err != nil {
		return fmt.Errorf("etcd does not start on %s: %w", c.DataDir, err)
	}
	return nil
}

// unusable explains why etcd does not start on files. A refusal of the system says nothing about the files.
func unusable(dir string, reason error) error {
	if isRefusal(reason) || errors.Is(reason, errNoRoom) {
		return fmt.Errorf("the store in %s cannot start: %w; acknowledged changes are kept; fix the cause and start again", dir, reason)
	}
	return fmt.Errorf("the files in %s are damaged (%w); restore a backup into an empty directory", dir, reason)
}

// checkDatabase checks the length of the database file against its first pages. Without the check etcd panics in a
// goroutine of its own, or is killed when it reads beyond the end of the file. It returns the last log entry that the
// database contains.
func checkDatabase(path string) (applied uint64, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil // a new database
	}
	if err == nil && info.Size() < int64(4*os.Getpagesize()) {
		return 0, dropUnfinished(path, info.Size())
	}
	if err != nil {
		return 0, err
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return 0, fmt.Errorf("member/snap/db: %w", err)
	}
	err = db.View(func(tx *bolt.Tx) error {
		if tx.Size() > info.Size() {
			return fmt.Errorf("member/snap/db has %d of %d bytes", info.Size(), tx.Size())
		}
		if meta := tx.Bucket([]byte("meta")); meta != nil {
			if index := meta.Get([]byte("consistent_index")); len(index) == 8 {
				applied = binary.BigEndian.Uint64(index)
			}
		}
		return nil
	})
	return applied, errors.Join(err, db.Close())
}

// dropUnfinished removes a database that lacks some of its first four pages. The first start of a store leaves one on a full disk, before there
// is a log.
func dropUnfinished(path string, size int64) error {
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), "..", "wal")); !errors.Is(err, os.ErrNotExist) {
		return errors.Join(err, fmt.Errorf("member/snap/db has only %d bytes", size))
	}
	return os.Remove(path)
}

func (e *embedded) keepSpace(s *Store, dir string, c Config) {
	next, err := nextSegmentOf(e.etcd, dir)
	if err != nil {
		c.Log.Warn("the store ends if its disk is full when its log begins a segment", "error", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	k := &spaceMaintainer{s: s, dir: dir, quota: c.Quota, tls: c.Member.TLS, log: c.Log, next: next}
	done := make(chan struct{})
	go func() { defer close(done); k.maintain(ctx) }()
	e.keeping = func() { stop(); <-done }
}

// ready waits until etcd answers. By then a member of several has applied its own joining, so it knows whether it is
// still a learner.
func (e *embedded) ready(ctx context.Context) error {
	select {
	case <-e.etcd.Server.ReadyNotify():
		return e.promote(ctx)
	case err := <-e.etcd.Err():
		if wait.Closed(e.etcd.Server.StoppingNotify()) {
			return errRemoved
		}
		return err
	case <-ctx.Done():
		return fmt.Errorf("etcd did not become ready: %w", context.Cause(ctx))
	}
}

// errRemoved is the reason of an etcd that stops by itself.
var errRemoved = errors.New("etcd has stopped, because the cluster has removed this member; let it join with an empty data directory")

// reportEnd reports when etcd ends by itself. It ends when etcd does.
func (e *embedded) reportEnd() {
	select {
	case err := <-e.etcd.Err():
		if err != nil { // Close makes it nil
			e.failed <- err
		}
	case <-e.etcd.Server.StopNotify():
		if !e.closing.Load() {
			e.failed <- errRemoved
		}
	}
}

// occupy locks the directory. Without the lock, etcd would wait for the other process to end.
func (e *embedded) occupy(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("the data directory cannot be made: %w", err)
	}
	lock, err := fileutil.TryLockFile(filepath.Join(dir, "LOCK"), os.O_WRONLY|os.O_CREATE, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return fmt.Errorf("%w: another holdfast runs on %s; stop it, or choose another directory with --data-dir",
			ErrInUse, dir)
	}
	if err != nil {
		return fmt.Errorf("the data directory cannot be locked: %w", err)
	}
	e.lock = lock
	return nil
}

func (e *embedded) socket(dir string) (string, error) {
	path := filepath.Join(dir, socketName)
	if len(path) <= maxSocketPath {
		return path, nil
	}
	var err error
	e.temp, err = os.MkdirTemp("", "holdfast-")
	return filepath.Join(e.temp, socketName), err
}

func etcdConfig(c Config, dir, socket string) *embed.Config {
	at := url.URL{Scheme: "unix", Path: socket}
	e := embed.NewConfig()
	e.Name = c.Member.Name
	e.Dir = dir
	e.ListenClientUrls, e.AdvertiseClientUrls = []url.URL{at}, []url.URL{at}
	e.ListenPeerUrls = nil
	e.InitialCluster = e.InitialClusterFromName(e.Name)
	e.EnableGRPCGateway = false
	e.AutoCompactionMode = embed.CompactorModePeriodic // by default etcd keeps everything
	e.AutoCompactionRetention = c.History.String()
	e.BootstrapDefragThresholdMegabytes = defragMegabytes
	e.QuotaBackendBytes = hardQuota(c.Quota)
	e.MaxTxnOps = MaxOps
	e.SnapshotCatchUpEntries = memberCatchUp
	e.SnapshotCount = snapshotCount
	e.MaxSnapFiles, e.MaxWalFiles = 0, 0 // [spaceMaintainer.prune] removes them
	if c.Member.PeerURL == "" {
		// In a cluster of one no heartbeat can be late, and a start waits for a random part of the election timeout.
		// This is the lowest number of ticks that etcd accepts. Each tick costs CPU time even when idle.
		e.TickMs, e.ElectionMs = 20, 100
		e.SnapshotCatchUpEntries = catchUp
	}
	return e
}

func (e *embedded) close() error {
	if e.keeping != nil {
		e.keeping()
	}
	if e.etcd != nil {
		e.closing.Store(true) // etcd logs errors about the listeners that it closes itself
		e.etcd.Close()
	}
	var err error
	if e.temp != "" {
		err = os.RemoveAll(e.temp)
	}
	return errors.Join(err, e.lock.Close())
}
