package rooms

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/server/kv"
)

// feed is this instance's one watch of a room: it tells every local participant each state, once and in
// order.
type feed struct {
	id      string
	stop    context.CancelFunc
	resumed func() // counts
	vacant  func() // runs when the room has told its last member that it is none any more
	log     *slog.Logger
	mu      sync.Mutex
	members map[string]*member // by token
	current *view              // nil until the first state came
}

// member is a socket that a feed tells.
type member struct {
	socket *socket
	since  int64 // the revision that made it a participant: earlier states are none of its business
	last   int64 // the revision it was told last
	moving bool  // it has asked to enter a room: if that is another, it need not be told that it is out of this one
}

// join adds a socket that has been a participant since a revision. The state of that revision, or a later
// one, is the first it is told.
func (f *feed) join(s *socket, since int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.members[s.token]
	if m == nil {
		m = &member{socket: s}
		f.members[s.token] = m
	}
	m.moving = false
	if m.last >= since {
		return // it has been told of its entry already
	}
	m.since, m.last = since, 0
	if f.current != nil {
		m.tell(f.current, nil)
	}
}

// part removes a socket.
func (f *feed) part(s *socket) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.members, s.token)
}

func (f *feed) empty() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.members) == 0
}

// publish tells everybody a state. Who was a participant and is none any more hears that last. A nil state
// is the end of the room, in that revision.
func (f *feed) publish(v *view, revision int64) {
	if f.tellAll(v, revision); f.empty() {
		f.vacant()
	}
}

func (f *feed) tellAll(v *view, revision int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	former := f.current
	f.current = v
	for token, m := range f.members {
		if v == nil && revision < m.since {
			continue // of a room of this name that was made anew
		} else if v == nil {
			f.dismiss(m, errClosed)
		} else if _, in := v.index[token]; !in && v.revision >= m.since {
			f.dismiss(m, errRemoved)
		} else {
			m.tell(v, former)
		}
	}
}

// dismiss tells a member that it is none any more. f.mu is held.
func (f *feed) dismiss(m *member, why *refusal) {
	delete(f.members, m.socket.token)
	if !m.moving {
		m.socket.out.add(outgoing{data: why.encoded()})
	}
}

// move notes whether a socket is on its way to another room.
func (f *feed) move(s *socket, moving bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.members[s.token]; m != nil {
		m.moving = moving
	}
}

// tell sends a state to a member, unless it is older than its entry or it has been told the same already.
func (m *member) tell(v, former *view) {
	if v.revision < m.since || v.revision <= m.last {
		return
	}
	// Who has just asked to enter is answered, even if nothing changed thereby.
	unchanged := !m.moving && m.last != 0 && former != nil && v.room.looksLike(former.room)
	m.last = v.revision
	if !unchanged {
		m.socket.out.add(outgoing{state: v})
	}
}

// run watches the room until ctx ends; revision is that of a change this instance made and is told first.
func (f *feed) run(ctx context.Context, store Store, revision int64) {
	key := roomPrefix + f.id
	after := revision - 1
	for ctx.Err() == nil {
		err := store.Watch(ctx, key, after, func(changes []kv.Change) error {
			for _, c := range changes {
				after = c.Modified
				if c.Key == key {
					f.take(c)
				}
			}
			return nil
		})
		if ctx.Err() != nil {
			return
		}
		f.resumed()
		if !errors.Is(err, kv.ErrCompacted) {
			f.log.Warn("a room's watch ended and begins again", "room", f.id, "error", err)
			_ = wait.For(ctx, resumeAfter)
			continue
		}
		entry, now, err := store.Get(ctx, key)
		if err != nil {
			_ = wait.For(ctx, resumeAfter)
			continue
		}
		after = now
		if entry.Found() {
			f.take(kv.Change{Entry: entry})
		} else {
			f.publish(nil, now)
		}
	}
}

// resumeAfter paces a watch that cannot be had.
const resumeAfter = 100 * time.Millisecond

func (f *feed) take(c kv.Change) {
	if c.Deleted {
		f.publish(nil, c.Modified)
		return
	}
	r, err := decodeRoom(c.Value)
	if err != nil {
		f.log.Error("a room cannot be read", "room", f.id, "error", err)
		return
	}
	f.publish(newView(r, c.Modified), c.Modified)
}
