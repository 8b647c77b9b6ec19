package kv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/storage"

	"github.com/holdfast-dev/holdfast/internal/wait"
)

// Space describes the free space of the embedded store. For an external cluster it is unknown.
type Space struct {
	// Used is the number of bytes in use, Size the size of the database file, and Quota the limit of Used.
	Used, Size, Quota int64
	// Free is the free space on the disk in bytes, and Files the number of further files that the disk has room for (inodes). -1 is unknown.
	Free, Files int64
	// Full means that the store refuses contents and keeps the remaining space for locks. Warn means that the store
	// is nearly full.
	Full, Warn bool
}

// String describes the space in one sentence.
func (r Space) String() string {
	state := "has space"
	switch {
	case r.Full:
		state = "is full: contents are refused, locks go on"
	case r.Warn:
		state = "is nearly full"
	}
	if fewFiles(r.Files, 2) {
		state += ", and its disk has few free inodes"
	}
	return fmt.Sprintf("the store %s (%d of %d bytes used, %d free on the disk)", state, r.Used, r.Quota, r.Free)
}

const (
	// measureInterval is the interval at which the embedded store measures its space. A measurement is cheap: it reads a
	// few numbers.
	measureInterval = time.Second
	// shortInterval is the interval at which the embedded store looks whether other programs have just filled the disk.
	shortInterval = 50 * time.Millisecond
	// Percentages of the quota: at fullAt the store refuses contents, at warnAt it warns, and below goodAt it accepts
	// contents again.
	fullAt, warnAt, goodAt = 95, 80, 90
	// lockShare is the divisor of the quota for the extra space that only locks may use: a quarter of the quota.
	lockShare = 4
)

// hardQuota is the limit at which etcd itself refuses changes. The share for locks does not raise it above etcd's
// recommended maximum, because etcd then warns at every start. Only an operator that sets such a quota sees the warning.
func hardQuota(quota int64) int64 {
	return min(quota+quota/lockShare+8<<20, max(quota, storage.MaxQuotaBytes))
}

// Space returns the result of the last measurement.
func (s *Store) Space() Space {
	if s.embedded == nil {
		return Space{Free: -1, Files: -1}
	}
	return *s.embedded.space.Load()
}

// ReservedForLeases reports whether the remaining space of an embedded store is for the leases that exist: half of the space that only locks
// may use is used. Without the other half, nothing renews, releases or ends those leases, and the store does not open again.
func (s *Store) ReservedForLeases() bool {
	if s.embedded == nil {
		return false
	}
	return s.embedded.etcd.Server.Backend().SizeInUse() > reservedForLeasesAt(s.Space().Quota)
}

// reservedForLeasesAt is in the middle between the size at which contents are refused, and etcd's own limit. With the default quota that limit
// is the quota.
func reservedForLeasesAt(quota int64) int64 { return (quota/100*fullAt + hardQuota(quota)) / 2 }

// spaceMaintainer measures the space of an embedded store and frees space.
type spaceMaintainer struct {
	s         *Store
	dir       string
	quota     int64
	tls       TLSFiles // of the members
	log       *slog.Logger
	next      *nextSegment
	compacted time.Time
	used      int64         // the fewest bytes in use since then
	allocated int64         // bytes of the database file whose blocks are allocated
	holds     bool          // whether the reserve file exists
	rest      time.Time     // until then the file does not shrink again
	pause     time.Duration // after the last attempt to shrink the file
	left      int64         // the bytes in use after that attempt
}

// maintain looks at the space again and again, until ctx ends.
func (k *spaceMaintainer) maintain(ctx context.Context) {
	for {
		if err := k.look(ctx); err != nil && ctx.Err() == nil {
			k.log.Warn("the store could not free space; it tries again", "error", err)
		}
		if k.waitForNext(ctx) != nil {
			return
		}
	}
}

// waitForNext waits until the next measurement. It ends early when the disk is full and the reserve file takes the last space: etcd ends the process if
// it writes a snapshot just then.
func (k *spaceMaintainer) waitForNext(ctx context.Context) error {
	for range measureInterval / shortInterval {
		if err := wait.For(ctx, shortInterval); err != nil || k.holds && short(freeOn(k.dir)) {
			return err
		}
	}
	return nil
}

// TakeSpace reports whether the disk of an embedded store has space for a content, beyond what the store needs itself. Contents that are being
// written at once count together, because [Store.Space] is up to a second old. The caller calls end when the content is written, or not.
func (s *Store) TakeSpace(bytes int64) (end func(), ok bool) {
	if s.embedded == nil {
		return func() {}, true
	}
	taken := &s.embedded.taken
	if !s.fits(taken.Add(bytes)) {
		taken.Add(-bytes)
		return nil, false
	}
	return func() { taken.Add(-bytes) }, true
}

// HasSpace reports whether TakeSpace would succeed, and takes nothing.
func (s *Store) HasSpace(bytes int64) bool {
	return s.embedded == nil || s.fits(s.embedded.taken.Load()+bytes)
}

// fits reports whether the disk of an embedded store has space for contents, beyond what the store needs itself.
func (s *Store) fits(bytes int64) bool {
	free := freeOn(s.embedded.dir)
	return (free < 0 || free-bytes >= diskReserve()) && !fewFiles(filesOn(s.embedded.dir), 1)
}

// look measures the space, and frees space if there is little.
func (k *spaceMaintainer) look(ctx context.Context) error {
	before := k.s.Space()
	now := k.measure(before.Full)
	if k.reserve(now) {
		now = k.measure(before.Full)
	}
	k.s.embedded.space.Store(&now)
	switch {
	case now.Full && !before.Full:
		k.log.Error("the store is full: contents are refused, locks go on; delete documents, or raise --quota",
			"used", now.Used, "quota", now.Quota, "disk_free", now.Free, "disk_files", now.Files)
	case now.Warn && !before.Warn:
		k.log.Warn("the store is nearly full", "used", now.Used, "quota", now.Quota, "disk_free", now.Free, "disk_files", now.Files)
	case before.Full && !now.Full:
		k.log.Info("the store has space again", "used", now.Used, "quota", now.Quota, "disk_free", now.Free)
	}
	return errors.Join(k.next.retry(now.Free), k.hold(now), k.prune(now), k.reclaim(ctx, now))
}

// reserve allocates disk blocks for the database file and for its growth by locks. On a full disk it allocates none,
// because the log needs them. etcd's log allocates its own blocks for the current segment and the next one. It reports
// whether less is free than r says.
func (k *spaceMaintainer) reserve(r Space) bool {
	if r.Size+growth/2 <= k.allocated || r.Free >= 0 && r.Free < diskReserve() {
		return false
	}
	want := r.Size + growth
	err := reserveBlocks(filepath.Join(k.dir, "member", "snap", "db"), want)
	if err == nil {
		k.allocated = want
	}
	return err == nil
}

func (k *spaceMaintainer) measure(wasFull bool) Space {
	backend := k.s.embedded.etcd.Server.Backend()
	r := Space{Used: backend.SizeInUse(), Size: backend.Size(), Quota: k.quota, Free: freeOn(k.dir), Files: filesOn(k.dir)}
	full := int64(fullAt)
	if wasFull {
		full = goodAt // prevents alternating between full and not full
	}
	r.Full = r.Used >= k.quota/100*full || r.Free >= 0 && r.Free < diskReserve() || fewFiles(r.Files, 1) || k.alarmed()
	r.Warn = r.Full || r.Used >= k.quota/100*warnAt || r.Free >= 0 && r.Free < 2*diskReserve() || fewFiles(r.Files, 2)
	return r
}

func (k *spaceMaintainer) alarmed() bool {
	for _, a := range k.s.embedded.etcd.Server.Alarms() {
		if a.Alarm == pb.AlarmType_NOSPACE {
			return true
		}
	}
	return false
}

// reclaim compacts the history when the store is nearly full, returns unused pages of the file to the disk, and
// clears etcd's alarms, which etcd never clears itself.
func (k *spaceMaintainer) reclaim(ctx context.Context, r Space) error {
	k.used = min(k.used, r.Used) // the pages that the last compaction has freed
	late := time.Since(k.compacted) > 10*time.Second || r.Used > k.used+min(growth, hardQuota(k.quota)-reservedForLeasesAt(k.quota))/4 || k.alarmed()
	if (r.Full || r.Used >= k.quota/100*goodAt) && late {
		k.compacted, k.used = time.Now(), r.Used
		_, revision, err := k.s.Get(ctx, "ready")
		if err == nil {
			err = k.s.Compact(ctx, revision)
		}
		if err != nil && !errors.Is(err, ErrCompacted) { // nothing has changed since, or another member was first
			return err
		}
	}
	if err := k.shrink(r); err != nil {
		return err
	}
	return k.endAlarms(ctx)
}

// endAlarms clears the alarm of this member when its file is small enough, and those of members that are lost and cannot do so. While there is
// an alarm, no member can change anything. A member that returns raises its alarm again if it still has no space.
func (k *spaceMaintainer) endAlarms(ctx context.Context) (failed error) {
	server := k.s.embedded.etcd.Server
	for _, a := range server.Alarms() {
		stays := server.Backend().Size() >= hardQuota(k.quota)
		if id := types.ID(a.MemberID); id != server.MemberID() {
			m := server.Cluster().Member(id)
			stays = m != nil && slices.ContainsFunc(m.PeerURLs, func(at string) bool { return runs(ctx, at, k.tls) })
		}
		if a.Alarm == pb.AlarmType_NOSPACE && !stays {
			_, err := server.Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE, Alarm: a.Alarm, MemberID: a.MemberID})
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// longestPause is the maximum pause between two attempts to shrink the file, unless an attempt takes longer than a twentieth of it.
const longestPause = time.Minute

// shrink returns unused pages of the file to the disk. This blocks the store for some milliseconds per MiB in use, and it may not help: an alarm
// stays while another member has no space, and an attempt fails on a full disk. So each pause is twice as long as the one before. The first ones
// are short, because a history that is being compacted frees its pages little by little.
func (k *spaceMaintainer) shrink(r Space) error {
	needed := r.Size >= k.quota/100*goodAt && r.Used < r.Size/2 || k.alarmed() && r.Used < r.Size
	if !needed || r.Used < k.left/4*3 { // much was freed meanwhile
		k.pause, k.rest = 0, time.Time{}
	}
	if !needed || time.Now().Before(k.rest) {
		return nil
	}
	began, backend := time.Now(), k.s.embedded.etcd.Server.Backend()
	k.allocated = 0 // Defrag creates a new file
	err := backend.Defrag()
	k.left = backend.SizeInUse()
	k.pause = min(max(measureInterval, 2*k.pause), max(longestPause, 20*time.Since(began)))
	k.rest = time.Now().Add(k.pause)
	return err
}
