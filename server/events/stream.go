package events

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// Now is the revision for [Hub.Stream] to receive only new events.
const Now int64 = -1

// Stream calls send with every event of a document after a revision, each exactly once and in order, until ctx ends or
// send fails. If those events are no longer known, or the store has not reached the revision, the first event is a
// [State], followed by the events after it.
func (h *Hub) Stream(ctx context.Context, document string, after int64, send func([]byte) error) error {
	// The listener starts before the past is read, so no event is missed. The loop below skips events that come
	// twice.
	l, past, known := h.listen(document, after)
	defer h.leave(document, l)
	switch {
	case after == Now:
	case known && h.remembered(ctx, document, after):
		for _, e := range past {
			if err := sendAll(e, send); err != nil {
				return err
			}
		}
	default:
		var err error
		if after, err = h.replay(ctx, document, after, send); err != nil {
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

// remembered reports whether the store still has the history after a revision. With this check the client gets the
// same answer whether or not this server has the events in memory.
func (h *Hub) remembered(ctx context.Context, document string, revision int64) bool {
	_, err := h.store.GetAt(ctx, prefix+document, max(revision, 1))
	return err == nil
}

// errCaughtUp ends the watch of replay.
var errCaughtUp = errors.New("caught up")

// replay sends past events and returns the last revision that it covers.
func (h *Hub) replay(ctx context.Context, document string, after int64, send func([]byte) error) (int64, error) {
	last, now, err := h.store.Get(ctx, prefix+document)
	if err != nil {
		return 0, err
	}
	if after > now {
		return h.sendState(ctx, document, send) // a revision of another store, or one that was lost
	}
	if !last.Found() {
		return h.absent(ctx, document, after, now, send)
	}
	if last.Modified <= after {
		return after, nil
	}
	sent := after
	err = h.store.Watch(ctx, prefix+document, after, func(changes []kv.Change) error {
		for _, c := range changes {
			if c.Key != prefix+document {
				continue // a document whose name begins with this document's name
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
		return h.sendState(ctx, document, send)
	}
	return sent, err
}

// absent sends the present state of a document that has no events at revision now, if the client may have missed some:
// those of a document that was deleted, or whose history is compacted.
func (h *Hub) absent(ctx context.Context, document string, after, now int64, send func([]byte) error) (int64, error) {
	former, err := h.store.GetAt(ctx, prefix+document, max(after, 1))
	switch {
	case errors.Is(err, kv.ErrCompacted) || err == nil && former.Found():
		return h.sendState(ctx, document, send)
	case err != nil:
		return 0, err
	}
	state, err := h.state(ctx, document)
	if err != nil || state.Token <= after || state.Token > now {
		return after, err
	}
	return h.sendState(ctx, document, send) // it was locked and then deleted, and the lock stays
}

func sendAll(e kv.Entry, send func([]byte) error) error {
	for _, event := range decode(e) {
		if err := send(encode(event)); err != nil {
			return err
		}
	}
	return nil
}

func (h *Hub) sendState(ctx context.Context, document string, send func([]byte) error) (int64, error) {
	e, err := h.state(ctx, document)
	if err != nil {
		return 0, err
	}
	e.Type, e.RoomID = State, document
	return e.Revision, send(encode(e))
}
