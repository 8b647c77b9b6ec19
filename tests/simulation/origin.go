package simulation

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
)

// origin contains what the tabs of one origin in one browser share: the browser's locks, files and channel.
type origin struct {
	w            *world
	name         string
	url          string
	browser      *browser
	clock        *machineClock
	locks        *locktest.Space // Web Locks
	files        *locktest.Space // the lock over a file
	records      *leaseTable
	bare         bool // without files
	faults       *storageFaults
	lockMessages *broadcast[lock.Message]
	editMessages *broadcast[autosave.Message]
	disk         *autosavetest.Disk         // the files of AutoSave
	shelf        *autosavetest.DraftStorage // the drafts

	mu    sync.Mutex
	tabs  []*tab
	steal time.Time // the last time that a lock was stolen
	death time.Time // the last time that a tab ended
}

func newOrigin(w *world, name, url string, b *browser, clock *machineClock) *origin {
	return &origin{w: w, name: name, url: url, browser: b, clock: clock, locks: locktest.NewSpace(), files: locktest.NewSpace(),
		records: &leaseTable{}, lockMessages: newBroadcast[lock.Message](), editMessages: newBroadcast[autosave.Message](),
		disk: autosavetest.NewDisk(), shelf: autosavetest.NewDraftStorage(), faults: &storageFaults{dice: w.dice(name + " storage")}}
}

// open opens a tab.
func (o *origin) open(name string) *tab {
	t := newTab(o.w, name, o)
	o.mu.Lock()
	o.tabs = append(o.tabs, t)
	o.mu.Unlock()
	return t
}

// forget releases the locks of a dead tab, as the browser does.
func (o *origin) forget(t *tab) {
	o.mu.Lock()
	o.tabs = slices.DeleteFunc(o.tabs, func(other *tab) bool { return other == t })
	o.death = time.Now()
	o.mu.Unlock()
	o.locks.Kill(t.name)
	o.files.Kill(t.name)
	o.records.forget(t.name)
}

// others returns all tabs except one.
func (o *origin) others(t *tab) []*tab {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(o.tabs), func(other *tab) bool { return other == t })
}

// projectKey is the project's name among the locks of its origin.
const projectKey = "holdfast:project"

// backend returns how a tab of the origin locks on this machine: over Web Locks, with or without records in a file,
// or over Web Locks and a file.
func (o *origin) backend(t *tab, file bool) lock.Backend {
	web := &locker{tab: t, inner: o.locks.Client(t.name)}
	if o.bare {
		return lock.Backend{Strategy: lock.WebLock, Resource: projectKey, Locker: web}
	}
	records, clock := &records{tab: t, table: o.records}, &lock.WallTokens{Clock: t}
	if !file {
		return lock.Backend{Strategy: lock.WebLock, Resource: projectKey, Locker: web,
			Records: lock.WithFallback(records, clock, nil)}
	}
	files := &locker{tab: t, inner: o.files.Client(t.name)}
	return lock.Backend{Strategy: lock.FileLock, Resource: "opfs:project", Key: projectKey, Locker: lock.Both(web, files), Records: lock.NearClock(records, clock), KeepsFrozen: true}
}

// stolen records that a tab steals.
func (o *origin) stolen() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.steal = time.Now()
}

// checkTakeover passes the holders of a name to the checker if a tab steals it to take over: it holds a lock for that.
func (o *origin) checkTakeover(stealer *tab, name string) {
	held := o.snapshot()
	if !slices.Contains(held, lock.Info{Name: name + " takeover", Mode: lock.Exclusive, ClientID: stealer.name}) {
		return
	}
	for _, i := range held {
		if i.Name == name {
			o.w.takenFrom(o, stealer, i.ClientID)
		}
	}
}

// stolenSince reports whether a lock was stolen since a moment.
func (o *origin) stolenSince(t time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.steal.Before(t)
}

// disturbedSince reports whether something happened since a moment that can cost a lease: a clock was set, storage
// failed, a heartbeat did not arrive, or the server was unhealthy.
func (o *origin) disturbedSince(t time.Time, remote bool) bool {
	if o.faults.failedSince(t) || o.clock.setSince(t) {
		return true
	}
	if !remote {
		return false
	}
	heartbeats, _ := o.browser.badSince(t)
	return heartbeats || o.browser.service.illSince(t)
}

// unreachedSince reports whether any request of the browser was lost or late since a moment, or could not be served.
func (o *origin) unreachedSince(t time.Time) bool {
	_, any := o.browser.badSince(t)
	return any || o.browser.service.illSince(t)
}

// held describes the holders.
func (o *origin) held() string {
	var text strings.Builder
	for _, i := range o.snapshot() {
		text.WriteString(i.ClientID + " " + i.Name + " " + string(i.Mode) + "; ")
	}
	return text.String()
}

func (o *origin) snapshot() []lock.Info {
	now, _ := o.locks.Client("").Query(context.Background())
	return now.Held
}

// holders returns the names of the tabs that hold a lock.
func (o *origin) holders() map[string]bool {
	holds := make(map[string]bool)
	for _, i := range o.snapshot() {
		holds[i.ClientID] = true
	}
	return holds
}

// keptByFrozen reports whether a frozen tab holds a name and nobody may take over from it yet, because its record is
// valid or it has none. It has no record for a place, and for the project if it was frozen while it waited for it.
// Nobody takes over from such a tab on purpose: see decision 9.
func (o *origin) keptByFrozen(remote bool) bool {
	frozen := o.frozen()
	return slices.ContainsFunc(o.snapshot(), func(i lock.Info) bool {
		place := i.Name != projectKey || i.Mode == lock.Shared
		recorded, valid := o.records.has(i.ClientID)
		return frozen[i.ClientID] && (place || valid || !remote && !recorded)
	})
}

// heldByFrozen reports whether a frozen tab holds the project alone.
func (o *origin) heldByFrozen() bool {
	frozen := o.frozen()
	return slices.ContainsFunc(o.snapshot(), func(i lock.Info) bool {
		return frozen[i.ClientID] && i.Name == projectKey && i.Mode == lock.Exclusive
	})
}

// frozen returns the tabs that are frozen.
func (o *origin) frozen() map[string]bool {
	frozen := make(map[string]bool)
	for _, t := range o.others(nil) {
		frozen[t.name] = !t.runs(0)
	}
	return frozen
}

// expireFiles takes the lock over the file from frozen tabs whose record has expired, as waiters do. It also does so
// for a tab without a record that has lost the Web Lock. The real file keeps such a tab's entry until the tab
// resumes. That needs a stealer that uses only Web Locks beside tabs that use a file.
func (o *origin) expireFiles() {
	holds := o.holders()
	for _, t := range o.others(nil) {
		if recorded, valid := o.records.has(t.name); !t.runs(0) && !valid && (recorded || !holds[t.name]) {
			o.files.Kill(t.name)
		}
	}
}

// unrestSince reports whether a tab was frozen or ended since a moment.
func (o *origin) unrestSince(t time.Time) bool {
	o.mu.Lock()
	death := o.death
	o.mu.Unlock()
	return death.After(t) || slices.ContainsFunc(o.others(nil), func(other *tab) bool { return !other.runs(time.Since(t)) })
}
