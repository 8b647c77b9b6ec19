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

// feed is this instance's one watch of a room. It passes new states to the outbox of each local participant, once and in order.
type feed struct {
	id      string
	stop    context.CancelFunc
	resumed func() // counts an interrupted watch
	vacant  func() // runs when the room has no local members left
	log     *slog.Logger
	mu      sync.Mutex
	members map[string]*member // by token
	current *view              // nil until the first state came
}

// member is a socket that receives the states of a feed.
type member struct {
	socket *socket
	since  int64 // the revision that made it a participant; it receives no earlier state
	last   int64 // the last revision that it received
	moving bool  // it has asked to enter a room; when it enters another one, it receives no "removed" for this one
}

// join adds a socket that has been a participant since a revision. The first state that it receives has that revision
// or a later one.
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
		return // the member has already received its entry
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

// publish sends a state to all members. A member that is no longer a participant receives an error and leaves the
// feed. A nil state means that the room ended in that revision.
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
			continue // a former room of this name ended; the member is in the new one
		} else if v == nil {
			f.dismiss(m, errClosed)
		} else if _, in := v.index[token]; !in && v.revision >= m.since {
			f.dismiss(m, errRemoved)
		} else {
			m.tell(v, former)
		}
	}
}

// dismiss removes a member and sends it the reason. The caller holds f.mu.
func (f *feed) dismiss(m *member, why *refusal) {
	delete(f.members, m.socket.token)
	if !m.moving {
		m.socket.out.add(outgoing{data: why.encoded()})
	}
}

// move records whether a socket is moving to another room. It reports false if the socket is no member.
func (f *feed) move(s *socket, moving bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.members[s.token]
	if m != nil {
		m.moving = moving
	}
	return m != nil
}

// tell sends a state to a member, unless the state precedes its entry or the member has received it already.
func (m *member) tell(v, former *view) {
	if v.revision < m.since || v.revision <= m.last {
		return
	}
	// A member that has just asked to enter always receives an answer, even if the state looks the same.
	unchanged := !m.moving && m.last != 0 && former != nil && v.room.looksLike(former.room)
	m.last = v.revision
	if !unchanged {
		m.socket.out.add(outgoing{state: v})
	}
}

// run watches the room until ctx ends. It starts with the state at revision, a change that this instance made.
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

// resumeAfter is the pause before a failed watch begins again.
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
