package events

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// Now is the revision to pass to [Hub.Stream] for what comes from now on.
const Now int64 = -1

// Stream calls send with every event of a room after a revision, each exactly once and in order, until ctx ends or send
// fails. Where those events are not known any more, or the revision is one that the store has not reached, the first is
// a [State], and those that came after it follow.
func (h *Hub) Stream(ctx context.Context, room string, after int64, send func([]byte) error) error {
	// Listening begins before the past is read, so nothing falls between; what comes twice then is left out.
	l, past, known := h.listen(room, after)
	defer h.leave(room, l)
	switch {
	case after == Now:
	case known && h.remembered(ctx, room, after):
		for _, e := range past {
			if err := sendAll(e, send); err != nil {
				return err
			}
		}
	default:
		var err error
		if after, err = h.replay(ctx, room, after, send); err != nil {
			return err
		}
	}
	for {
		select {
		case m := <-l.queue:
			if m.revision <= after {
				continue
			}
			if err := send(m.text); err != nil {
				return err
			}
		case <-l.slow:
			return ErrSlow
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// remembered reports whether the store still knows what came after a revision: the answer to a client is the same
// whether or not this server happens to have it in memory.
func (h *Hub) remembered(ctx context.Context, room string, revision int64) bool {
	_, err := h.store.GetAt(ctx, prefix+room, max(revision, 1))
	return err == nil
}

// errCaughtUp ends the watch of a replay.
var errCaughtUp = errors.New("caught up")

// replay sends what is past and returns the revision up to which everything has been sent.
func (h *Hub) replay(ctx context.Context, room string, after int64, send func([]byte) error) (int64, error) {
	last, now, err := h.store.Get(ctx, prefix+room)
	if err != nil {
		return 0, err
	}
	if after > now {
		return h.sendState(ctx, room, send) // a revision of another store, or of one that was lost
	}
	if last.Modified <= after {
		// Nothing since, unless the key has been cleared away together with the history before it.
		_, err := h.store.GetAt(ctx, prefix+room, max(after, 1))
		if errors.Is(err, kv.ErrCompacted) && !last.Found() {
			return h.sendState(ctx, room, send)
		}
		if errors.Is(err, kv.ErrCompacted) {
			err = nil
		}
		return after, err
	}
	sent := after
	err = h.store.Watch(ctx, prefix+room, after, func(changes []kv.Change) error {
		for _, c := range changes {
			if c.Key != prefix+room {
				continue // a room whose name begins with this one's
			}
			if err := sendAll(c.Entry, send); err != nil {
				return err
			}
			sent = c.Modified
		}
		if sent >= last.Modified {
			return errCaughtUp
		}
		return nil
	})
	switch {
	case errors.Is(err, errCaughtUp):
		return sent, nil
	case errors.Is(err, kv.ErrCompacted):
		return h.sendState(ctx, room, send)
	}
	return sent, err
}

func sendAll(e kv.Entry, send func([]byte) error) error {
	for _, event := range decode(e) {
		if err := send(encode(event)); err != nil {
			return err
		}
	}
	return nil
}

func (h *Hub) sendState(ctx context.Context, room string, send func([]byte) error) (int64, error) {
	e, err := h.state(ctx, room)
	if err != nil {
		return 0, err
	}
	e.Type, e.RoomID = State, room
	return e.Revision, send(encode(e))
}
