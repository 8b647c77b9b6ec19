package rooms

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfast-dev/holdfast/server/kv"
)

const (
	roomPrefix     = "rooms/"
	updatePrefix   = "room_updates/"
	memberPrefix   = "user_rooms/"
	socketPrefix   = "socket_instances/"
	instancePrefix = "instances/"
)

// maxAlike bounds how many participants of one session and name are looked at when somebody comes back.
const maxAlike = 16

// table makes the changes of rooms in the store. Each is part of one transaction.
type table struct {
	queue
	instance string
}

// create makes a room with one participant, who leaves the one they were in.
func (t *table) create(ctx context.Context, id string, who participant) (int64, error) {
	return t.change(ctx, id, func(x *txn) error {
		if err := leaveFormer(x, who.Token, id); err != nil {
			return err
		}
		r, err := room{ID: id}.enter(who.Token, who.Name, who.Session)
		if err != nil {
			return err
		}
		x.put(memberPrefix+who.Token, []byte(id))
		x.save(r)
		return nil
	})
}

func (t *table) exists(ctx context.Context, id string) (bool, error) {
	entry, _, err := t.store.Get(ctx, roomPrefix+id)
	if err != nil {
		return false, known(err)
	}
	return entry.Found(), nil
}

// enter puts somebody into a room, out of the one they were in. Who comes back (see the package
// documentation) takes the place of the former token. Where there is no such room, create makes it.
func (t *table) enter(ctx context.Context, id string, who participant, previous string, create bool) (int64, error) {
	return t.change(ctx, id, func(x *txn) error {
		r, err := x.room(id)
		if create && errors.Is(err, errNoRoom) {
			r, err = room{ID: id}, nil
		}
		if err != nil {
			return err
		}
		if err := leaveFormer(x, who.Token, id); err != nil {
			return err
		}
		former, err := returning(x, r, who, previous)
		if err != nil {
			return err
		}
		if former == "" {
			r, err = r.enter(who.Token, who.Name, who.Session)
		} else {
			x.delete(memberPrefix + former)
			x.delete(socketPrefix + former)
			r, err = r.resume(former, who.Token, who.Name, who.Session)
		}
		if err != nil {
			return err
		}
		x.put(memberPrefix+who.Token, []byte(id))
		x.save(r)
		return nil
	})
}

// returning finds the token of the participant as whom somebody comes back, "" for none.
func returning(x *txn, r room, who participant, previous string) (string, error) {
	if r.index(who.Token) >= 0 {
		return "", nil
	}
	if previous != "" && r.index(previous) >= 0 {
		return previous, nil
	}
	alike := r.alike(who.Session, who.Name)
	for _, token := range alike[:min(len(alike), maxAlike)] {
		instance, err := x.get(socketPrefix + token)
		if err != nil || instance == nil {
			return token, err
		}
	}
	return "", nil
}

func (t *table) answer(ctx context.Context, id, token, answer string) (int64, error) {
	return t.update(ctx, id, func(r room) (room, error) { return r.answer(token, answer) })
}

func (t *table) clearAll(ctx context.Context, id, token string) (int64, error) {
	return t.update(ctx, id, func(r room) (room, error) { return r.clearAll(token) })
}

func (t *table) update(ctx context.Context, id string, compute func(room) (room, error)) (int64, error) {
	return t.change(ctx, id, func(x *txn) error {
		r, err := x.room(id)
		if err != nil {
			return err
		}
		if r, err = compute(r); err != nil {
			return err
		}
		x.save(r)
		return nil
	})
}

// leave takes a participant out of its room, unless it has a socket (again).
func (t *table) leave(ctx context.Context, token string) error {
	entry, _, err := t.store.Get(ctx, memberPrefix+token)
	if err != nil || !entry.Found() {
		return err
	}
	_, err = t.change(ctx, string(entry.Value), func(x *txn) error {
		instance, err := x.get(socketPrefix + token)
		if err != nil || instance != nil {
			return err
		}
		return leaveFormer(x, token, "")
	})
	return err
}

// leaveFormer takes a participant out of the room it is in, if that is another than id.
func leaveFormer(x *txn, token, id string) error {
	former, err := x.get(memberPrefix + token)
	if err != nil || former == nil || string(former) == id {
		return err
	}
	x.delete(memberPrefix + token)
	r, err := x.room(string(former))
	if errors.Is(err, errNoRoom) {
		return nil
	}
	if err != nil {
		return err
	}
	x.save(r.leave(token))
	return nil
}

// close removes a room with its participants, unless it has changed since updated was read.
func (t *table) close(ctx context.Context, id string, updated kv.Entry) error {
	entry, _, err := t.store.Get(ctx, roomPrefix+id)
	if err != nil {
		return err
	}
	txn := kv.Txn{
		If:   []kv.Cond{kv.Unchanged(updated)},
		Then: []kv.Op{kv.Delete(roomPrefix + id), kv.Delete(updatePrefix + id)},
	}
	var tokens []string
	if r, err := decodeRoom(entry.Value); err == nil {
		for _, p := range r.Participants {
			tokens = append(tokens, p.Token)
		}
	}
	// Of a room that is larger than a transaction, the rest follows: without its room it means nothing.
	for chunk := range slices.Chunk(append([]string{""}, tokens...), kv.MaxOps-2) {
		for _, token := range chunk {
			if token != "" {
				txn.Then = append(txn.Then, kv.Delete(memberPrefix+token))
			}
		}
		result, err := t.store.Commit(ctx, txn)
		if err != nil || !result.Held {
			return err
		}
		txn = kv.Txn{If: []kv.Cond{kv.Absent(roomPrefix + id)}}
	}
	return nil
}

// register notes that the token's socket is connected to this instance.
func (t *table) register(ctx context.Context, token string) error {
	_, err := t.store.Commit(ctx, kv.Txn{Then: []kv.Op{kv.Put(socketPrefix+token, []byte(t.instance))}})
	return err
}

func (t *table) unregister(ctx context.Context, token string) error {
	_, err := t.store.Commit(ctx, kv.Txn{Then: []kv.Op{kv.Delete(socketPrefix + token)}})
	return err
}
