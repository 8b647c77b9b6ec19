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

// maxAlike bounds how many participants with the same session and name a returning client is compared with.
const maxAlike = 16

// table changes rooms in the store. Each change is part of one transaction.
type table struct {
	queue
	instance string
}

// create makes a room with one participant, and takes that participant out of its former room.
func (t *table) create(ctx context.Context, id string, who participant) (int64, error) {
	return t.change(ctx, id, func(x *txn) error {
		if err := leaveFormer(x, who.Token, id); err != nil {
			return err
		}
		r, err := t.add(room{ID: id}, who)
		if err != nil {
			return err
		}
		t.place(x, who.Token, id)
		x.save(r)
		return nil
	})
}

// add adds a participant, if the store has space for more than locks.
func (t *table) add(r room, who participant) (room, error) {
	if r.index(who.Token) < 0 && t.store.Space().Full {
		return r, errNoSpace
	}
	return r.enter(who.Token, who.Name, who.Session)
}

// place stores the room of a token and registers its socket at this instance. The registration may be gone because
// another socket took over the token's place.
func (t *table) place(x *txn, token, id string) {
	x.put(memberPrefix+token, []byte(id))
	x.put(socketPrefix+token, []byte(t.instance))
}

// exists reads the time of a room's last change, which a room has as long as it exists. The room itself may be large, and thousands of sockets
// may ask at once.
func (t *table) exists(ctx context.Context, id string) (bool, error) {
	entry, _, err := t.store.Get(ctx, updatePrefix+id)
	if err != nil {
		return false, known(err)
	}
	return entry.Found(), nil
}

// enter puts a participant into a room and takes it out of its former room. A participant that comes back (see the
// package documentation) takes the place of the former token. With create, enter makes a room that does not exist.
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
			r, err = t.add(r, who)
		} else {
			x.delete(memberPrefix + former)
			x.delete(socketPrefix + former)
			r, err = r.resume(former, who.Token, who.Name, who.Session)
		}
		if err != nil {
			return err
		}
		t.place(x, who.Token, id)
		x.save(r)
		return nil
	})
}

// returning finds the token of the participant that comes back, "" for a new one.
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
	return t.update(ctx, id, token, func(r room) (room, error) { return r.answer(token, answer) })
}

func (t *table) clearAll(ctx context.Context, id, token string) (int64, error) {
	return t.update(ctx, id, token, func(r room) (room, error) { return r.clearAll(token) })
}

func (t *table) update(ctx context.Context, id, token string, compute func(room) (room, error)) (int64, error) {
	return t.change(ctx, id, func(x *txn) error {
		r, err := x.roomOf(id, token)
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

// leave takes a participant out of its room, unless it has a socket at another instance. connected reports whether
// this instance has its socket. A registration here without a socket is removed.
func (t *table) leave(ctx context.Context, token string, connected func(string) bool) error {
	entry, _, err := t.store.Get(ctx, memberPrefix+token)
	if err != nil {
		return err
	}
	if !entry.Found() {
		return t.forget(ctx, token, connected)
	}
	_, err = t.change(ctx, string(entry.Value), func(x *txn) error {
		instance, err := x.get(socketPrefix + token)
		if err != nil {
			return err
		}
		if instance != nil {
			if string(instance) != t.instance || connected(token) {
				return nil
			}
			x.delete(socketPrefix + token)
		}
		return leaveFormer(x, token, "")
	})
	return err
}

// forget removes the registration of a socket that is no longer connected to this instance.
func (t *table) forget(ctx context.Context, token string, connected func(string) bool) error {
	if connected(token) {
		return nil
	}
	key := socketPrefix + token
	_, err := t.store.Commit(ctx, kv.Txn{If: []kv.Cond{kv.Holds(key, []byte(t.instance))}, Then: []kv.Op{kv.Delete(key)}})
	return err
}

// leaveFormer takes a participant out of its room if that room is not id. An unreadable room does not prevent this.
func leaveFormer(x *txn, token, id string) error {
	former, err := x.get(memberPrefix + token)
	if err != nil || former == nil || string(former) == id {
		return err
	}
	x.delete(memberPrefix + token)
	r, err := x.room(string(former))
	switch {
	case errors.Is(err, errNoRoom), errors.Is(err, errUnreadable):
		return nil
	case err != nil:
		return err
	}
	x.save(r.leave(token))
	return nil
}

// closeBatch is how many participants of a closed room one transaction removes.
const closeBatch = kv.MaxOps - 2

// close removes a room and its participants, unless the room has changed since updated was read.
func (t *table) close(ctx context.Context, id string, updated kv.Entry) error {
	entry, _, err := t.store.Get(ctx, roomPrefix+id)
	if err != nil {
		return err
	}
	first := kv.Txn{
		If:   []kv.Cond{kv.Unchanged(updated)},
		Then: []kv.Op{kv.Delete(roomPrefix + id), kv.Delete(updatePrefix + id)},
	}
	r, _ := decodeRoom(entry.Value)
	now := r.Participants[:min(len(r.Participants), closeBatch)]
	for _, p := range now {
		first.Then = append(first.Then, kv.Delete(memberPrefix+p.Token))
	}
	result, err := t.store.Commit(ctx, first)
	if err != nil || !result.Held {
		return err
	}
	// The remaining keys of a large room follow. They mean nothing without the room, but a participant may have
	// entered another room meanwhile, or made this one again.
	for rest := range slices.Chunk(r.Participants[len(now):], closeBatch) {
		var each []kv.Txn
		for _, p := range rest {
			key := memberPrefix + p.Token
			each = append(each, kv.Txn{If: []kv.Cond{kv.Holds(key, []byte(id)), kv.Absent(roomPrefix + id)}, Then: []kv.Op{kv.Delete(key)}})
		}
		if _, err := t.store.CommitEach(ctx, each); err != nil {
			return err
		}
	}
	return nil
}

// register stores that the token's socket is connected to this instance.
func (t *table) register(ctx context.Context, token string) error {
	_, err := t.store.Commit(ctx, kv.Txn{Then: []kv.Op{kv.Put(socketPrefix+token, []byte(t.instance))}})
	return err
}

// registerAll registers sockets, as many per transaction as fit.
func (t *table) registerAll(ctx context.Context, tokens []string) error {
	for chunk := range slices.Chunk(tokens, kv.MaxOps) {
		var puts []kv.Op
		for _, token := range chunk {
			puts = append(puts, kv.Put(socketPrefix+token, []byte(t.instance)))
		}
		if _, err := t.store.Commit(ctx, kv.Txn{Then: puts}); err != nil {
			return err
		}
	}
	return nil
}

func (t *table) unregister(ctx context.Context, token string) error {
	_, err := t.store.Commit(ctx, kv.Txn{Then: []kv.Op{kv.Delete(socketPrefix + token)}})
	return err
}
