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
)

const (
	// defragMegabytes is how much must be free inside the database file for a start to shrink it.
	defragMegabytes = 256
	// socketName is the socket in the data directory through which etcd's own tools reach the store.
	socketName = "etcd.sock"
	// catchUp is how many entries of the log one that has no followers keeps in memory. With etcd's 5000, those of heartbeats,
	// which go by the dozen in an entry, take 25 MB after some minutes.
	catchUp = 100
	// memberCatchUp is the same for a member of several. A follower that is further behind gets the database instead of the entries.
	// An entry with as many heartbeats as go together has some 30 KB, so the log takes 60 MB at most.
	memberCatchUp = 2000
	// maxSocketPath is how long the path of a socket may be everywhere.
	maxSocketPath = 100
)

// embedded is the etcd in this process with what must go when it does.
type embedded struct {
	etcd    *embed.Etcd
	lock    *fileutil.LockedFile
	alone   bool
	closing atomic.Bool
	room    atomic.Pointer[Room]
	applied uint64 // the last entry of the log that the database had at the start
	broken  bool   // its log cannot be gone on with
	keeping func() // ends the keeper of its room
	temp    string // the socket's directory where the data directory's path is too long for one
}

func openEmbedded(ctx context.Context, c Config) (*Store, error) {
	dir, err := filepath.Abs(c.DataDir)
	if err != nil {
		return nil, err
	}
	e := &embedded{alone: c.Member.PeerURL == ""}
	e.room.Store(&Room{Quota: c.Quota, Free: -1})
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
	if err := e.ready(ctx, c); err != nil {
		return nil, errors.Join(err, e.close())
	}
	// In-process calls instead of gRPC over the socket: a third of the time and of the processor, same interface.
	s := &Store{client: inProcess(e.etcd.Server), embedded: e, endpoint: "unix:" + socket, timeout: c.Timeout}
	e.keepRoom(s, dir, c)
	if err := s.announce(ctx, c.Member.PeerURL); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// start starts etcd. If its files are damaged, it panics or ends the process by itself; here that is an error.
func (e *embedded) start(c Config, settings *embed.Config) (err error) {
	starting.Add(1)
	defer starting.Add(-1)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the files in %s are damaged (%v); restore a backup into an empty directory", c.DataDir, p)
		}
	}()
	if e.applied, err = checkDatabase(filepath.Join(settings.Dir, "member", "snap", "db")); err != nil {
		return fmt.Errorf("the files in %s are damaged (%w); restore a backup into an empty directory", c.DataDir, err)
	}
	e.etcd, err = embed.StartEtcd(settings)
	if err != nil {
		return fmt.Errorf("etcd does not start on %s: %w", c.DataDir, err)
	}
	return nil
}

// checkDatabase looks whether the file of the database is whole, as far as its first pages tell: etcd opens it in a goroutine
// of its own and panics there, or is killed when it reads beyond the end. It returns the last entry of the log that is in it.
func checkDatabase(path string) (applied uint64, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil // a new one
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

func (e *embedded) keepRoom(s *Store, dir string, c Config) {
	ctx, stop := context.WithCancel(context.Background())
	k := &keeper{s: s, dir: dir, quota: c.Quota, log: c.Log}
	done := make(chan struct{})
	go func() { defer close(done); k.keep(ctx) }()
	e.keeping = func() { stop(); <-done }
}

// ready waits until etcd answers. By then a member of several has applied that it joined, so it knows whether it is a
// learner still.
func (e *embedded) ready(ctx context.Context, c Config) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for behind := 0; ; {
		select {
		case <-e.etcd.Server.ReadyNotify():
			if e.logIsBehind() {
				return e.damagedLog(c)
			}
			return e.promote(ctx)
		case <-ticker.C:
			if behind++; !e.logIsBehind() {
				behind = 0
			}
			if behind > 20 { // a leader commits at once
				return e.damagedLog(c)
			}
		case err := <-e.etcd.Err():
			return err
		case <-ctx.Done():
			return fmt.Errorf("etcd did not become ready: %w", context.Cause(ctx))
		}
	}
}

// logIsBehind reports whether the log of a cluster of one ends before what the database has of it. Etcd would not apply what
// it commits then, until the log has caught up: acknowledged changes would be lost.
func (e *embedded) logIsBehind() bool {
	return e.alone && e.etcd.Server.Leader() != 0 && e.etcd.Server.CommittedIndex() < e.applied
}

func (e *embedded) damagedLog(c Config) error {
	e.broken = true
	return fmt.Errorf("the files in %s are damaged (member/wal ends before the database does); restore a backup into an empty directory",
		c.DataDir)
}

// occupy makes sure that nobody else uses the directory. Without it etcd would wait for the other to end.
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
	e.AutoCompactionMode = embed.CompactorModePeriodic // etcd's default is to keep everything
	e.AutoCompactionRetention = c.History.String()
	e.BootstrapDefragThresholdMegabytes = defragMegabytes
	e.QuotaBackendBytes = hardQuota(c.Quota)
	e.MaxTxnOps = MaxOps
	e.SnapshotCatchUpEntries = memberCatchUp
	e.SnapshotCount, e.MaxWalFiles = snapshotCount, keptSegments
	if c.Member.PeerURL == "" {
		// Alone, nobody's heartbeat can be late, and a start waits for a random part of the election timeout. That has the
		// fewest ticks that etcd takes: each costs processor time, also when there is nothing to do.
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
		e.closing.Store(true) // etcd complains of the listeners that it closes itself
		if e.broken {
			go e.etcd.Close() // which waits for entries that never come; the process is about to end
		} else {
			e.etcd.Close()
		}
	}
	var err error
	if e.temp != "" {
		err = os.RemoveAll(e.temp)
	}
	return errors.Join(err, e.lock.Close())
}
