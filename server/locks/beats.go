package locks

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
)

const (
	// beatPause is the minimum pause between two commits of heartbeats. Heartbeats of the meantime share the next
	// commit, since one commit for ten costs little more than a commit for one. A heartbeat after a quiet time does
	// not wait.
	beatPause = 60 * time.Millisecond
	// beatBatch is the maximum number of heartbeats per commit.
	beatBatch = 100
)

// heartbeat is an extension that has not reached the store yet.
type heartbeat struct {
	storedLease
	expires time.Time
	answer  chan<- beatAnswer
}

type beatAnswer struct {
	held bool
	err  error
}

// beat commits an extension together with others, and reports whether the lease still existed.
func (t *Table) beat(ctx context.Context, s storedLease, expires time.Time) (bool, error) {
	answer := make(chan beatAnswer, 1)
	select {
	case t.heartbeats <- heartbeat{s, expires, answer}:
	case <-t.closed:
		return false, kv.ErrUnavailable
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	select {
	case a := <-answer:
		return a.held, a.err
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// commitBeats commits heartbeats until the table is closed.
func (t *Table) commitBeats(ctx context.Context) {
	var last time.Time
	for {
		var batch []heartbeat
		select {
		case h := <-t.heartbeats:
			batch = append(batch, h)
		case <-ctx.Done():
			return
		}
		batch = t.gather(ctx, batch, last.Add(beatPause))
		last = time.Now()
		t.running.Go(func() { t.commitBatch(ctx, batch) })
	}
}

// gather adds the heartbeats that arrive until a moment.
func (t *Table) gather(ctx context.Context, batch []heartbeat, until time.Time) []heartbeat {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	for len(batch) < beatBatch {
		select {
		case h := <-t.heartbeats:
			batch = append(batch, h)
		case <-timer.C:
			return batch
		case <-ctx.Done():
			return batch
		}
	}
	return batch
}

// commitBatch commits heartbeats. Two heartbeats of one lease become one with the later expiry, so no holder receives
// a later expiry than the store has. A batch may also contain a heartbeat of a former lease of the same place, whose
// holder does not know yet that it has ended. That one goes after the others, so that it does not get their answer.
func (t *Table) commitBatch(ctx context.Context, batch []heartbeat) {
	var now, later []heartbeat
	sent := map[string]heartbeat{} // the latest heartbeat of the lease whose heartbeats of a place go now
	for _, h := range batch {
		key := h.beatKey()
		last, ok := sent[key]
		if ok && last.token != h.token {
			later = append(later, h)
			continue
		}
		now = append(now, h)
		if !ok || h.expires.After(last.expires) {
			sent[key] = h
		}
	}
	var txns []kv.Txn
	place := map[string]int{}
	for key, h := range sent {
		place[key] = len(txns)
		txns = append(txns, kv.Txn{
			If:   []kv.Cond{kv.CreatedAt(h.keys()[0], h.token)},
			Then: []kv.Op{kv.Put(key, encodeBeat(h.expires))},
		})
	}
	held, err := t.store.CommitEach(ctx, txns)
	for _, h := range now {
		h.answer <- beatAnswer{err == nil && held[place[h.beatKey()]], err}
	}
	if len(later) > 0 {
		t.commitBatch(ctx, later)
	}
}
