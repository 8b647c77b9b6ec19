package rooms

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// sweeper shows that this instance lives, and clears away what others left when they died. Every instance
// has one; what two of them do at once does no harm, since each step is checked in its transaction.
type sweeper struct {
	rooms *Rooms
	// seen tells when the sign of life of each instance last changed. Time is measured here, from one
	// change to the next: the clocks of two machines are never compared.
	seen map[string]sighting
	// orphans tells since when a participant has been seen without a socket.
	orphans map[string]time.Time
}

type sighting struct {
	revision int64 // of the sign of life; 0 where there is none
	since    time.Time
}

func newSweeper(r *Rooms) *sweeper {
	return &sweeper{rooms: r, seen: map[string]sighting{}, orphans: map[string]time.Time{}}
}

// heartbeats runs until ctx ends.
func (w *sweeper) heartbeats(ctx context.Context) {
	every(ctx, w.rooms.config.Heartbeat, func() {
		ctx, cancel := context.WithTimeout(ctx, w.rooms.config.StoreLimit)
		defer cancel()
		err := w.beat(ctx)
		if err == nil {
			err = w.look(ctx, time.Now())
		}
		if err != nil && ctx.Err() == nil {
			w.rooms.config.Log.Warn("the store could not be swept", "error", err)
		}
	})
}

// every calls f now and in intervals, until ctx ends.
func every(ctx context.Context, interval time.Duration, f func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		f()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// beat renews this instance's sign of life. If it is gone, others took this instance for dead. Then it registers all
// its sockets again before it shows the sign: if one fails, the next beat begins anew. A socket that closes meanwhile may be
// registered after its end; [sweeper.look] removes that.
func (w *sweeper) beat(ctx context.Context) error {
	t := w.rooms.table
	key := instancePrefix + t.instance
	sign := kv.Put(key, encodeTime(t.now()))
	result, err := t.store.Commit(ctx, kv.Txn{If: []kv.Cond{kv.Exists(key)}, Then: []kv.Op{sign}})
	if err != nil || result.Held {
		return err
	}
	if err := t.registerAll(ctx, w.rooms.tokens()); err != nil {
		return err
	}
	_, err = t.store.Commit(ctx, kv.Txn{Then: []kv.Op{sign}})
	return err
}

// look removes the sockets of instances that died, the registrations of this instance that have no socket, and the
// participants that have had no socket for longer than the time of grace.
func (w *sweeper) look(ctx context.Context, now time.Time) error {
	store := w.rooms.config.Store
	instances, _, err := store.Range(ctx, instancePrefix)
	if err != nil {
		return err
	}
	sockets, _, err := store.Range(ctx, socketPrefix)
	if err != nil {
		return err
	}
	members, _, err := store.Range(ctx, memberPrefix)
	if err != nil {
		return err
	}
	dead := w.dead(instances, sockets, now)
	var gone []kv.Entry
	connected := map[string]bool{}
	for _, e := range sockets {
		token := e.Key[len(socketPrefix):]
		if since, ok := dead[string(e.Value)]; ok {
			gone = append(gone, e)
			w.orphans[token] = since
		} else if string(e.Value) == w.rooms.config.Instance && !w.rooms.connected(token) {
			gone = append(gone, e)
		} else {
			connected[token] = true
		}
	}
	for _, e := range instances {
		if _, ok := dead[e.Key[len(instancePrefix):]]; ok {
			gone = append(gone, e)
		}
	}
	if err := w.remove(ctx, gone); err != nil {
		return err
	}
	return w.evict(ctx, members, connected, now)
}

// dead returns the instances that have shown no sign of life for too long, each with the time since when.
func (w *sweeper) dead(instances, sockets []kv.Entry, now time.Time) map[string]time.Time {
	revisions := map[string]int64{}
	for _, e := range sockets {
		revisions[string(e.Value)] = 0
	}
	for _, e := range instances {
		revisions[e.Key[len(instancePrefix):]] = e.Modified
	}
	dead := map[string]time.Time{}
	seen := map[string]sighting{}
	for id, revision := range revisions {
		s, known := w.seen[id]
		if !known || s.revision != revision {
			s = sighting{revision, now}
		}
		seen[id] = s
		if now.Sub(s.since) >= w.rooms.config.Dead && id != w.rooms.config.Instance {
			dead[id] = s.since
		}
	}
	w.seen = seen
	return dead
}

// remove deletes entries that are still as they were read.
func (w *sweeper) remove(ctx context.Context, gone []kv.Entry) error {
	for _, e := range gone {
		txn := kv.Txn{If: []kv.Cond{kv.Unchanged(e)}, Then: []kv.Op{kv.Delete(e.Key)}}
		if _, err := w.rooms.config.Store.Commit(ctx, txn); err != nil {
			return err
		}
	}
	if len(gone) > 0 {
		w.rooms.config.Log.Info("removed what a socket or an instance left behind", "keys", len(gone))
	}
	return nil
}

// evict has those participants leave that have been without a socket for too long. One that cannot leave stops no other.
func (w *sweeper) evict(ctx context.Context, members []kv.Entry, connected map[string]bool, now time.Time) error {
	orphans := map[string]time.Time{}
	var failed error
	for _, e := range members {
		token := e.Key[len(memberPrefix):]
		if connected[token] {
			continue
		}
		since, known := w.orphans[token]
		if !known {
			since = now
		}
		orphans[token] = since
		if now.Sub(since) < w.rooms.config.Grace {
			continue
		}
		if err := w.rooms.table.leave(ctx, token, w.rooms.connected); err != nil {
			failed = err
			continue
		}
		delete(orphans, token)
	}
	w.orphans = orphans
	return failed
}

// idleScans closes rooms where nothing has happened for long, until ctx ends.
func (w *sweeper) idleScans(ctx context.Context) {
	every(ctx, w.rooms.config.IdleScan, func() {
		ctx, cancel := context.WithTimeout(ctx, w.rooms.config.StoreLimit)
		defer cancel()
		if err := w.closeIdle(ctx); err != nil && ctx.Err() == nil {
			w.rooms.config.Log.Warn("idle rooms could not be closed", "error", err)
		}
	})
}

func (w *sweeper) closeIdle(ctx context.Context) error {
	updates, _, err := w.rooms.config.Store.Range(ctx, updatePrefix)
	if err != nil {
		return err
	}
	limit := w.rooms.config.Now().Add(-w.rooms.config.Idle)
	updates = slices.DeleteFunc(updates, func(e kv.Entry) bool {
		at, err := decodeTime(e.Value)
		return err == nil && at.After(limit)
	})
	for _, e := range updates {
		id := e.Key[len(updatePrefix):]
		if err := w.rooms.table.close(ctx, id, e); err != nil {
			return err
		}
		w.rooms.config.Log.Info("closed an idle room", "room", id)
	}
	return nil
}
