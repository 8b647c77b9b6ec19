package rooms

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// sweeper shows that this instance lives, and removes the remains of instances that died. Every instance has one. Two
// sweepers that do the same thing at once do no harm, because each step is checked in its transaction.
//
// The cost depends on the number of instances and on the entries that changed or are due. Rooms and sockets at rest
// cost nothing.
type sweeper struct {
	rooms *Rooms
	seen  *presence
	away  bool // the last sign of life failed
}

func newSweeper(r *Rooms) *sweeper {
	seen := newPresence(r.config.Instance, r.connected)
	seen.clock = r.config.Now
	return &sweeper{rooms: r, seen: seen}
}

// start runs the sweeper's tasks until ctx ends.
func (w *sweeper) start(ctx context.Context, run func(func())) {
	for _, k := range w.seen.kinds() {
		run(func() {
			w.seen.follow(ctx, w.rooms.config.Store, k, func(err error) {
				w.rooms.config.Log.Warn("a watch of the rooms ended and begins again", "of", k.prefix, "error", err)
			})
		})
	}
	run(func() { w.heartbeats(ctx) })
	run(func() { w.idleScans(ctx) })
}

// heartbeats renews the sign of life and looks for remains until ctx ends.
func (w *sweeper) heartbeats(ctx context.Context) {
	every(ctx, w.rooms.config.Heartbeat, func() {
		ctx, cancel := context.WithTimeout(ctx, w.rooms.config.StoreLimit)
		defer cancel()
		if err := w.sweep(ctx, time.Now()); err != nil && ctx.Err() == nil {
			w.rooms.config.Log.Warn("the store could not be swept", "error", err)
		}
	})
}

// sweep renews the sign of life and looks for remains. While the store refuses this instance's sign, it may refuse the signs of
// all instances, and sockets cannot come back. So the time of the others starts again when the store accepts the sign.
func (w *sweeper) sweep(ctx context.Context, now time.Time) error {
	if err := w.beat(ctx); err != nil {
		w.away = true
		return err
	}
	if w.away {
		w.seen.restart(now)
		w.away = false
	}
	return w.look(ctx, now)
}

// every calls f now and at each interval, until ctx ends.
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

// beat renews this instance's sign of life. If the sign is gone, other instances took this one for dead. Then beat
// registers all sockets again before it shows the sign. If one registration fails, the next beat starts over. A
// socket that closes meanwhile may be registered after its end; [sweeper.look] removes that registration.
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

// look removes the sockets of dead instances, the registrations of this instance without a socket, and the
// participants that have had no socket for longer than the grace period.
func (w *sweeper) look(ctx context.Context, now time.Time) error {
	if !w.seen.complete() {
		return nil // unread entries would count as missing
	}
	for _, d := range w.seen.dead(now, w.rooms.config.Dead) {
		if err := w.removeInstance(ctx, d, now); err != nil {
			return err
		}
	}
	if _, err := w.remove(ctx, w.seen.ownStrays()); err != nil {
		return err
	}
	return w.evict(ctx, now)
}

// deadPeer is the last known state of an instance that seems to have died.
type deadPeer struct {
	id      string
	sign    int64
	since   time.Time
	sockets []kv.Entry
}

// removeInstance removes a dead instance: its sign of life with the first of its sockets, and then the other sockets. An instance that wakes up
// meanwhile misses its sign, and registers all sockets again. removeInstance reads the sign from the store, because the watch may be late.
func (w *sweeper) removeInstance(ctx context.Context, d deadPeer, now time.Time) error {
	key := instancePrefix + d.id
	sign, _, err := w.rooms.config.Store.Get(ctx, key)
	if err != nil {
		return err
	}
	if sign.Modified != d.sign {
		w.seen.alive(d.id, now)
		return nil
	}
	gone := d.sockets
	if sign.Found() {
		first := gone[:min(len(gone), removeBatch-1)]
		removed, err := w.remove(ctx, append([]kv.Entry{sign}, first...), kv.Unchanged(sign))
		if err != nil || len(removed) == 0 {
			return err
		}
		w.seen.orphaned(d.id, removed[1:], d.since)
		gone = gone[len(first):]
	}
	removed, err := w.remove(ctx, gone, kv.Absent(key))
	w.seen.orphaned(d.id, removed, d.since)
	return err
}

// removeBatch is how many entries one transaction removes, under at most two conditions each. Etcd counts these too.
const removeBatch = kv.MaxOps - 2

// remove deletes the entries that have not changed since they were read, under the further conditions. It returns the
// deleted ones.
func (w *sweeper) remove(ctx context.Context, gone []kv.Entry, conditions ...kv.Cond) (removed []kv.Entry, err error) {
	for batch := range slices.Chunk(gone, removeBatch) {
		var txns []kv.Txn
		for _, e := range batch {
			txns = append(txns, kv.Txn{If: append([]kv.Cond{kv.Unchanged(e)}, conditions...), Then: []kv.Op{kv.Delete(e.Key)}})
		}
		held, err := w.rooms.config.Store.CommitEach(ctx, txns)
		if err != nil {
			return removed, err
		}
		for i, e := range batch {
			if held[i] {
				removed = append(removed, e)
			}
		}
	}
	if len(removed) > 0 {
		w.rooms.config.Log.Info("removed what a socket or an instance left behind", "keys", len(removed))
	}
	return removed, nil
}

// evict removes the participants that have had no socket for too long. A failure with one participant does not stop
// the others.
func (w *sweeper) evict(ctx context.Context, now time.Time) error {
	var failed error
	for _, token := range w.seen.orphansSince(now.Add(-w.rooms.config.Grace)) {
		if err := w.rooms.table.leave(ctx, token, w.rooms.connected); err != nil {
			failed = err
			continue
		}
		w.seen.wait(token, now) // until the watch reports it; a participant that stayed is no longer an orphan
	}
	return failed
}

// idleScans closes idle rooms until ctx ends.
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
	for _, u := range w.seen.idleSince(w.rooms.config.Now().Add(-w.rooms.config.Idle)) {
		if err := w.rooms.table.close(ctx, u.room, u.entry()); err != nil {
			return err
		}
		w.rooms.config.Log.Info("closed an idle room", "room", u.room)
	}
	return nil
}
