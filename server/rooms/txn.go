package rooms

import (
	"bytes"
	"context"
	"maps"
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// Store is the part of the store that rooms need. [kv.Store] implements it.
type Store interface {
	Get(ctx context.Context, key string) (kv.Entry, int64, error)
	Each(ctx context.Context, prefix string, limit int64, f func([]kv.Entry) error) (int64, error)
	Commit(ctx context.Context, txn kv.Txn) (kv.Result, error)
	CommitEach(ctx context.Context, txns []kv.Txn) ([]bool, error)
	Watch(ctx context.Context, prefix string, after int64, f func([]kv.Change) error) error
	Space() kv.Space
}

// txn collects the reads and writes of changes. Its commit does nothing if any of the values read has changed since.
type txn struct {
	ctx   context.Context
	store Store
	state
	sentBytes int // the bytes of the encoded rooms for all their participants
}

// state holds the reads and pending writes so far: keys, and rooms, which are encoded once at the end. A nil value
// deletes its key. A room without participants is deleted too.
type state struct {
	reads map[string]kv.Entry
	keys  map[string][]byte
	rooms map[string]room
}

func newTxn(ctx context.Context, store Store) *txn {
	return &txn{ctx: ctx, store: store, state: state{map[string]kv.Entry{}, map[string][]byte{}, map[string]room{}}}
}

// try computes one more change. If the change fails or does not fit into the transaction, the transaction stays as it
// was, without conditions on the values that the change read.
func (x *txn) try(compute func(*txn) error) (fits bool, err error) {
	before := state{maps.Clone(x.reads), maps.Clone(x.keys), maps.Clone(x.rooms)}
	err = compute(x)
	fits = len(x.reads) <= kv.MaxOps && len(x.keys)+2*len(x.rooms) <= kv.MaxOps
	if err != nil || !fits {
		x.state = before
	}
	return fits, err
}

// get reads a key. It returns nil for a missing key.
func (x *txn) get(key string) ([]byte, error) {
	if value, ok := x.keys[key]; ok {
		return value, nil
	}
	entry, ok := x.reads[key]
	if !ok {
		var err error
		if entry, _, err = x.store.Get(x.ctx, key); err != nil {
			return nil, err
		}
		x.reads[key] = entry
	}
	return entry.Value, nil
}

func (x *txn) put(key string, value []byte) { x.keys[key] = value }

func (x *txn) delete(key string) { x.keys[key] = nil }

// room reads a room, or fails with errNoRoom.
func (x *txn) room(id string) (room, error) {
	r, ok := x.rooms[id]
	if !ok {
		data, err := x.get(roomPrefix + id)
		if err != nil {
			return room{}, err
		}
		if data == nil {
			return room{}, errNoRoom
		}
		return decodeRoom(data)
	}
	if len(r.Participants) == 0 {
		return room{}, errNoRoom
	}
	return r, nil
}

// roomOf is room for one of its participants. It fails with errNotInRoom for a token that is not in the room's text, because decoding a large
// room takes milliseconds.
func (x *txn) roomOf(id, token string) (room, error) {
	if _, decoded := x.rooms[id]; !decoded {
		data, err := x.get(roomPrefix + id)
		if err != nil {
			return room{}, err
		}
		if data != nil && !bytes.Contains(data, []byte(token)) {
			return room{}, errNotInRoom
		}
	}
	return x.room(id)
}

// save stores a room, or deletes it if it has no participants.
func (x *txn) save(r room) { x.rooms[r.ID] = r }

// encode returns the transaction. It fails with errFull if a room is too large.
func (x *txn) encode(now time.Time) (kv.Txn, error) {
	var t kv.Txn
	for key, entry := range x.reads {
		if entry.Found() {
			t.If = append(t.If, kv.Unchanged(entry))
		} else {
			t.If = append(t.If, kv.Absent(key))
		}
	}
	for id, r := range x.rooms {
		if len(r.Participants) == 0 {
			t.Then = append(t.Then, kv.Delete(roomPrefix+id), kv.Delete(updatePrefix+id))
			continue
		}
		data, err := r.encode()
		if err != nil {
			return t, err
		}
		x.sentBytes += len(data) * len(r.Participants)
		t.Then = append(t.Then, kv.Put(roomPrefix+id, data), kv.Put(updatePrefix+id, encodeTime(now)))
	}
	for key, value := range x.keys {
		if value == nil {
			t.Then = append(t.Then, kv.Delete(key))
		} else {
			t.Then = append(t.Then, kv.Put(key, value))
		}
	}
	return t, nil
}
