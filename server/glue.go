package server

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-dev/holdfast/server/asks"
	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/dav"
	"github.com/holdfast-dev/holdfast/server/events"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/rooms"
)

// recordLock makes the events of changes of a document's lock.
func recordLock(room string, changes ...locks.Change) []kv.Op {
	var list []events.Event
	for _, c := range changes {
		e := events.Event{Type: events.Unlocked, Reason: string(c.Reason), Token: c.Lease.Token,
			ByID: c.By.ID, ByName: c.By.Name, Why: c.Why}
		if c.Locked {
			e = events.Event{
				Type: events.Locked, HolderID: c.Lease.Holder.ID, HolderName: c.Lease.Holder.Name,
				LockedAt: events.At(c.Lease.LockedAt), ExpiresAt: events.At(c.Lease.ExpiresAt),
			}
		}
		list = append(list, e)
	}
	return []kv.Op{events.Record(room, list...)}
}

// recordAsk makes the event of a question to a holder.
func recordAsk(room string, a asks.Ask, ended asks.Outcome) []kv.Op {
	e := events.Event{Type: events.Asked, Ask: a.ID, Token: a.Token, HolderID: a.By.ID, HolderName: a.By.Name}
	if ended != "" {
		e.Type, e.Reason = events.AskEnded, string(ended)
	} else {
		e.AskedAt = events.At(time.UnixMilli(a.At))
	}
	return []kv.Op{events.Record(room, e)}
}

// recordContent makes the event of a save.
func recordContent(room string, saved content.Info) []kv.Op {
	return []kv.Op{events.Record(room, events.Event{
		Type: events.Updated, ETag: saved.ETag, Token: saved.Token, SavedAt: events.At(saved.SavedAt),
	})}
}

// forgetDocument removes the events and the properties of a document that is deleted.
func forgetDocument(room string) []kv.Op { return append(dav.Forget(room), events.Forget(room)) }

// state reads the whole present state of a document.
func state(table *locks.Table, contents *content.Store) func(context.Context, string) (events.Event, error) {
	return func(ctx context.Context, room string) (events.Event, error) {
		lease, revision, err := table.At(ctx, locks.Document(room))
		if err != nil {
			return events.Event{}, err
		}
		locked := lease.Token != 0
		e := events.Event{Revision: revision, IsLocked: &locked}
		if locked {
			e.HolderID, e.HolderName, e.Token = lease.Holder.ID, lease.Holder.Name, lease.Token
			e.LockedAt, e.ExpiresAt = events.At(lease.LockedAt), events.At(lease.ExpiresAt)
		}
		saved, err := contents.Describe(ctx, room, revision)
		switch {
		case err == nil:
			e.ETag, e.ContentToken, e.SavedAt = saved.ETag, saved.Token, events.At(saved.SavedAt)
		case !errors.Is(err, content.ErrNotFound):
			return e, err
		}
		return e, nil
	}
}

// registerRooms registers gauges for rooms and their sockets.
func registerRooms(registry *prometheus.Registry, r *rooms.Rooms) {
	for name, metric := range map[string]struct {
		help  string
		value func(rooms.Stats) float64
	}{
		"room_sockets":   {"Open WebSockets of rooms.", func(s rooms.Stats) float64 { return float64(s.Sockets) }},
		"rooms_followed": {"Rooms with a participant at this server.", func(s rooms.Stats) float64 { return float64(s.Rooms) }},
	} {
		registry.MustRegister(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Namespace: "holdfast", Name: name, Help: metric.help},
			func() float64 { return metric.value(r.Stats()) }))
	}
}

const sessionKeyName = "secrets/session"

// sessionKey returns the key that the sessions of a store are signed with; the first server of the store makes it.
func sessionKey(ctx context.Context, store *kv.Store) ([]byte, error) {
	made := make([]byte, 32)
	rand.Read(made) // never fails
	result, err := store.Commit(ctx, kv.Txn{
		If:   []kv.Cond{kv.Absent(sessionKeyName)},
		Then: []kv.Op{kv.Put(sessionKeyName, made)}, Else: []kv.Op{kv.Read(sessionKeyName)},
	})
	if err != nil || result.Held {
		return made, err
	}
	return result.Reads[0][0].Value, nil
}

// registerRoom registers gauges for the size of the embedded store.
func registerRoom(registry *prometheus.Registry, store *kv.Store) {
	for name, metric := range map[string]struct {
		help  string
		value func(kv.Room) int64
	}{
		"store_used_bytes":  {"Bytes of the embedded store that are in use.", func(r kv.Room) int64 { return r.Used }},
		"store_size_bytes":  {"Bytes of the embedded store's file.", func(r kv.Room) int64 { return r.Size }},
		"store_quota_bytes": {"Bytes that the embedded store may use.", func(r kv.Room) int64 { return r.Quota }},
		"disk_free_bytes":   {"Bytes that are free on the data directory's disk; -1 if unknown.", func(r kv.Room) int64 { return r.Free }},
		"store_full":        {"1 while contents are refused for want of room.", func(r kv.Room) int64 { return count(r.Full) }},
		"store_nearly_full": {"1 while the store is full or nearly so.", func(r kv.Room) int64 { return count(r.Warn) }},
	} {
		registry.MustRegister(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Namespace: "holdfast", Name: name, Help: metric.help},
			func() float64 { return float64(metric.value(store.Room())) }))
	}
}

func count(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
