package kv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage"

	"github.com/holdfast-dev/holdfast/internal/wait"
)

// Room is how much room the embedded store has. Of an external cluster nothing is known.
type Room struct {
	// Used are the bytes in use, Size those of the database's file, Quota those that Used may reach.
	Used, Size, Quota int64
	// Free are the bytes that are free on the disk, or -1.
	Free int64
	// Full tells that contents are refused: what is left is for locks. Warn tells that this is near.
	Full, Warn bool
}

// String says what there is, in a sentence.
func (r Room) String() string {
	state := "has room"
	switch {
	case r.Full:
		state = "is full: contents are refused, locks go on"
	case r.Warn:
		state = "is nearly full"
	}
	return fmt.Sprintf("the store %s (%d of %d bytes used, %d free on the disk)", state, r.Used, r.Quota, r.Free)
}

const (
	// lookForRoom is how often the embedded store looks how much room it has: its cost is a look at two numbers.
	lookForRoom = time.Second
	// Shares of the quota, in hundredths: where contents are refused, where a warning comes, and where contents are taken
	// again.
	fullAt, warnAt, goodAt = 95, 80, 90
	// lockShare is the part of the quota that locks may take beyond it, where contents may not.
	lockShare = 4
)

// hardQuota is what etcd itself refuses beyond. The part for locks does not lift it over etcd's recommended maximum: etcd warns of
// that at every start, and only who sets such a quota shall see it.
func hardQuota(quota int64) int64 {
	return min(quota+quota/lockShare+8<<20, max(quota, storage.MaxQuotaBytes))
}

// Room returns how much room there was at the last look.
func (s *Store) Room() Room {
	if s.embedded == nil {
		return Room{Free: -1}
	}
	return *s.embedded.room.Load()
}

// keeper watches the room of an embedded store and makes more.
type keeper struct {
	s         *Store
	dir       string
	quota     int64
	log       *slog.Logger
	compacted time.Time
	used      int64 // the bytes in use then
	reserved  int64 // bytes of the database's file whose blocks are taken
	holds     bool  // the reserve file
}

// keep runs until ctx ends.
func (k *keeper) keep(ctx context.Context) {
	for {
		if err := k.look(ctx); err != nil && ctx.Err() == nil {
			k.log.Warn("no room could be made in the store; it is tried again", "error", err)
		}
		if wait.For(ctx, lookForRoom) != nil {
			return
		}
	}
}

// look notes how much room there is, and makes some where there is little.
func (k *keeper) look(ctx context.Context) error {
	before := k.s.Room()
	now := k.measure(before.Full)
	k.s.embedded.room.Store(&now)
	k.reserve(now)
	switch {
	case now.Full && !before.Full:
		k.log.Error("the store is full: contents are refused, locks go on; delete documents, or raise --quota",
			"used", now.Used, "quota", now.Quota, "disk_free", now.Free)
	case now.Warn && !before.Warn:
		k.log.Warn("the store is nearly full", "used", now.Used, "quota", now.Quota, "disk_free", now.Free)
	case before.Full && !now.Full:
		k.log.Info("the store has room again", "used", now.Used, "quota", now.Quota, "disk_free", now.Free)
	}
	return errors.Join(k.hold(now), k.makeRoom(ctx, now))
}

// reserve takes the disk's blocks for the database as it is and for growth by locks. On a disk that is full it takes none, since the
// log needs them. Etcd's log takes its own, for the present segment and the next one.
func (k *keeper) reserve(r Room) {
	if r.Size+growth/2 <= k.reserved || r.Free >= 0 && r.Free < diskReserve() {
		return
	}
	want := r.Size + growth
	if err := reserveBlocks(filepath.Join(k.dir, "member", "snap", "db"), want); err == nil {
		k.reserved = want
	}
}

func (k *keeper) measure(wasFull bool) Room {
	backend := k.s.embedded.etcd.Server.Backend()
	r := Room{Used: backend.SizeInUse(), Size: backend.Size(), Quota: k.quota, Free: freeOn(k.dir)}
	full := int64(fullAt)
	if wasFull {
		full = goodAt // not back and forth
	}
	r.Full = r.Used >= k.quota/100*full || r.Free >= 0 && r.Free < diskReserve() || k.alarmed()
	r.Warn = r.Full || r.Used >= k.quota/100*warnAt || r.Free >= 0 && r.Free < 2*diskReserve()
	return r
}

func (k *keeper) alarmed() bool {
	for _, a := range k.s.embedded.etcd.Server.Alarms() {
		if a.Alarm == pb.AlarmType_NOSPACE {
			return true
		}
	}
	return false
}

// makeRoom forgets the history when the store is full, gives unused pages of the file back, and takes back etcd's alarm,
// which nobody else does.
func (k *keeper) makeRoom(ctx context.Context, r Room) error {
	late := time.Since(k.compacted) > 10*time.Second || r.Used > k.used+growth/4
	if (r.Full || r.Used >= k.quota/100*goodAt) && late {
		k.compacted, k.used = time.Now(), r.Used
		_, revision, err := k.s.Get(ctx, "ready")
		if err == nil {
			err = k.s.Compact(ctx, revision)
		}
		if err != nil {
			return err
		}
	}
	if r.Size >= k.quota/100*goodAt && r.Used < r.Size/2 || k.alarmed() && r.Used < r.Size {
		// It keeps the store waiting, for some milliseconds for each MiB in use.
		k.reserved = 0 // it makes another file
		if err := k.s.embedded.etcd.Server.Backend().Defrag(); err != nil {
			return err
		}
	}
	if !k.alarmed() || k.s.embedded.etcd.Server.Backend().Size() >= hardQuota(k.quota) {
		return nil
	}
	_, err := k.s.embedded.etcd.Server.Alarm(ctx, &pb.AlarmRequest{
		Action: pb.AlarmRequest_DEACTIVATE, Alarm: pb.AlarmType_NOSPACE, MemberID: uint64(k.s.embedded.etcd.Server.MemberID())})
	return err
}
