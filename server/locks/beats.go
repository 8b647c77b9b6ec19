package locks

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
)

const (
	// beatPause is the minimum pause between two commits of heartbeats. Heartbeats that arrive during the pause share
	// the next commit, because one commit for ten costs little more than a commit for one. A heartbeat that arrives
	// after the pause does not wait.
	beatPause = 60 * time.Millisecond
	// beatBatch is the maximum number of heartbeats per commit. beatBytes is the size of the keys of a commit, in bytes, above which it gets no
	// further ones: a key may have 6 KB and comes five times, and the store refuses a commit that is too large.
	beatBatch, beatBytes = 100, 64 << 10
)

// heartbeat is an extension that has not reached the store yet.
type heartbeat struct {
	storedLease
	former  int64 // the revision of the last heartbeat, as far as this server knows
	expires time.Time
	answer  chan<- beatAnswer
}

type beatAnswer struct {
	held bool
	err  error
}

// beat commits an extension after a former one together with others, and reports whether the lease still existed.
func (t *Table) beat(ctx context.Context, s storedLease, former int64, expires time.Time) (bool, error) {
	answer := make(chan beatAnswer, 1)
	select {
	case t.heartbeats <- heartbeat{s, former, expires, answer}:
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

// gather adds the heartbeats that arrive until a moment, unless the batch is full.
func (t *Table) gather(ctx context.Context, batch []heartbeat, until time.Time) []heartbeat {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	for size := len(batch[0].key); len(batch) < beatBatch && size < beatBytes; {
		select {
		case h := <-t.heartbeats:
			batch, size = append(batch, h), size+len(h.key)
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
//
// A heartbeat that is late in the store must not follow one that was made after it: a server that starts then knows only the stored expiry. So
// each heartbeat requires that the last one is the one that this server knows.
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
		txns = append(txns, h.txn())
	}
	held, err := t.store.CommitEach(ctx, txns)
	for _, h := range now {
		if err != nil || held[place[h.beatKey()]] {
			h.answer <- beatAnswer{err == nil, err}
			continue
		}
		t.running.Go(func() {
			held, err := t.beatAgain(ctx, h)
			h.answer <- beatAnswer{held, err}
		})
	}
	if len(later) > 0 {
		t.commitBatch(ctx, later)
	}
}

func (h heartbeat) txn() kv.Txn {
	return kv.Txn{
		If:   []kv.Cond{kv.CreatedAt(h.keys()[0], h.token), kv.ChangedAt(h.beatKey(), h.former)},
		Then: []kv.Op{kv.Put(h.beatKey(), encodeBeat(h.expires))},
		Else: []kv.Op{kv.Read(h.keys()[0]), kv.Read(h.beatKey())},
	}
}

// beatAgain commits a heartbeat of a lease that has ended, or that got another heartbeat which this server did not know. Then the later of both
// expiries stays. It reports whether the lease still existed.
func (t *Table) beatAgain(ctx context.Context, h heartbeat) (bool, error) {
	for {
		result, err := t.store.Commit(ctx, h.txn())
		if err != nil || result.Held {
			return result.Held, err
		}
		claim, last := result.Reads[0], result.Reads[1]
		if len(claim) == 0 || claim[0].Created != h.token || len(last) == 0 {
			return false, nil
		}
		h.former = last[0].Modified
		if expires, ok := decodeBeat(last[0]); ok && expires.After(h.expires) {
			h.expires = expires
		}
	}
}
