package kv

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/embed"
)

const (
	// quota is how large the embedded database may grow before it refuses writes.
	quota = 8 << 30
	// defragMegabytes is how much must be free inside the database file for a start to shrink it.
	defragMegabytes = 256
	// socketName is the socket in the data directory through which etcd's own tools reach the store.
	socketName = "etcd.sock"
	// catchUp is how many entries of the log one that has no followers keeps in memory. With etcd's 5000, those of heartbeats,
	// which go by the dozen in an entry, take 25 MB after some minutes.
	catchUp = 100
	// maxSocketPath is how long the path of a socket may be everywhere.
	maxSocketPath = 100
)

// embedded is the etcd in this process with what must go when it does.
type embedded struct {
	etcd    *embed.Etcd
	lock    *fileutil.LockedFile
	alone   bool
	closing atomic.Bool
	temp    string // the socket's directory where the data directory's path is too long for one
}

func openEmbedded(ctx context.Context, c Config) (*Store, error) {
	dir, err := filepath.Abs(c.DataDir)
	if err != nil {
		return nil, err
	}
	e := &embedded{alone: c.Member.PeerURL == ""}
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
	if e.etcd, err = embed.StartEtcd(settings); err != nil {
		return nil, errors.Join(fmt.Errorf("etcd does not start on %s: %w", c.DataDir, err), e.close())
	}
	if err := e.ready(ctx); err != nil {
		return nil, errors.Join(err, e.close())
	}
	// In-process calls instead of gRPC over the socket: a third of the time and of the processor, same interface.
	s := &Store{client: inProcess(e.etcd.Server), embedded: e, endpoint: "unix:" + socket, timeout: c.Timeout}
	if err := s.announce(ctx, c.Member.PeerURL); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// ready waits until etcd answers. By then a member of several has applied that it joined, so it knows whether it is a
// learner still.
func (e *embedded) ready(ctx context.Context) error {
	select {
	case <-e.etcd.Server.ReadyNotify():
		return e.promote(ctx)
	case err := <-e.etcd.Err():
		return err
	case <-ctx.Done():
		return fmt.Errorf("etcd did not become ready: %w", context.Cause(ctx))
	}
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
	e.QuotaBackendBytes = quota
	e.MaxTxnOps = MaxOps
	if c.Member.PeerURL == "" {
		// Alone, nobody's heartbeat can be late, and a start waits for a random part of the election timeout. That has the
		// fewest ticks that etcd takes: each costs processor time, also when there is nothing to do.
		e.TickMs, e.ElectionMs = 20, 100
		e.SnapshotCatchUpEntries = catchUp
	}
	return e
}

func (e *embedded) close() error {
	if e.etcd != nil {
		e.closing.Store(true) // etcd complains of the listeners that it closes itself
		e.etcd.Close()
	}
	var err error
	if e.temp != "" {
		err = os.RemoveAll(e.temp)
	}
	return errors.Join(err, e.lock.Close())
}
