package simulation

import (
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// leaseTable is the file with the records of an origin. It keeps several records side by side, like the real file:
// those of shared leases, and of holders whose lock was stolen and that do not know yet.
type leaseTable struct {
	mu    sync.Mutex
	token int64
	list  []leaseEntry
}

type leaseEntry struct {
	client  string
	written time.Time
	lock.Record
}

// claim writes a record with a token above all others and above the wall clock.
func (t *leaseTable) claim(client string, r lock.Record, now time.Time, stolen bool) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = slices.DeleteFunc(t.list, func(e leaseEntry) bool { return e.LeaseID == r.LeaseID }) // an earlier attempt left it
	t.token = max(t.token+1, r.Token+1, now.UnixMilli())
	r.Token = t.token
	if stolen {
		t.list = slices.DeleteFunc(t.list, func(e leaseEntry) bool { return e.client != client })
	}
	t.list = append(t.list, leaseEntry{client, time.Now(), r})
	return r.Token
}

func (t *leaseTable) find(leaseID string) *leaseEntry {
	for i := range t.list {
		if t.list[i].LeaseID == leaseID {
			return &t.list[i]
		}
	}
	return nil
}

func (t *leaseTable) renew(client string, r lock.Record) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.find(r.LeaseID)
	if e == nil || e.client != client {
		return lock.ErrLost
	}
	e.ExpiresAt, e.written = r.ExpiresAt, time.Now()
	return nil
}

// read returns the record with the highest token. If it is shared, read returns the shared one that expires last.
func (t *leaseTable) read() (r lock.Record, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.list {
		if e.Token > r.Token {
			r, ok = e.Record, true
		}
	}
	for _, e := range t.list {
		if r.Mode == lock.Shared && e.Mode == lock.Shared && e.ExpiresAt.After(r.ExpiresAt) {
			r = e.Record
		}
	}
	return r, ok
}

func (t *leaseTable) remove(client, leaseID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = slices.DeleteFunc(t.list, func(e leaseEntry) bool { return e.client == client && e.LeaseID == leaseID })
}

// forget removes the records of a dead client.
func (t *leaseTable) forget(client string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = slices.DeleteFunc(t.list, func(e leaseEntry) bool { return e.client == client })
}

// has reports whether a client has a record, and whether one of them is still valid in real time.
func (t *leaseTable) has(client string) (any, valid bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.list {
		any = any || e.client == client
		valid = valid || e.client == client && time.Since(e.written) < e.TTL
	}
	return any, valid
}

// writtenSince returns the clients that have written a record since a moment.
func (t *leaseTable) writtenSince(since time.Time) (clients []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.list {
		if e.written.After(since) {
			clients = append(clients, e.client)
		}
	}
	return clients
}
