package events

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// Turn waits until a client may read past events from the store. The caller calls end afterwards.
type Turn func() (end func(), err error)

// Now is the revision for [Hub.Stream] to receive only new events.
const Now int64 = -1

// Stream calls send with every event of a document after a revision, each exactly once and in order, until ctx ends or
// send fails. If those events are no longer known, or the store has not reached the revision, the first event is a
// [State], followed by the events after it. If past events must be read from the store, which takes many reads, Stream first calls turn, and
// then the function that it returns.
func (h *Hub) Stream(ctx context.Context, document string, after int64, turn Turn, send func([]byte) error) error {
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
		end, err := turn()
		if err != nil {
			return err
		}
		after, err = h.replay(ctx, document, after, inTime(send))
		end()
		if err != nil {
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

// sendingLimit is how long a client may take in total to receive past events. Others wait for its turn.
const sendingLimit = time.Minute

// inTime returns send with the limit. Above it, it fails with [ErrSlow]: the client may resume from the last event that it has received.
func inTime(send func([]byte) error) func([]byte) error {
	var took time.Duration
	return func(text []byte) error {
		if took > sendingLimit {
			return ErrSlow
		}
		begun := time.Now()
		err := send(text)
		took += time.Since(begun)
		return err
	}
}

// remembered reports whether the store still has the history after a revision. With this check the client gets the
// same answer whether or not this server has the events in memory.
func (h *Hub) remembered(ctx context.Context, document string, revision int64) bool {
	_, err := h.store.GetAt(ctx, prefix+document, revision)
	return err == nil
}

// errCaughtUp ends the watch of lookBack.
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
	missed, known, err := h.missed(ctx, last, after)
	if err == nil && !known {
		return h.watchPast(ctx, document, last, after, send)
	}
	for _, revision := range slices.Backward(missed) {
		var e kv.Entry
		if e, err = h.store.GetAt(ctx, last.Key, revision); err != nil {
			break
		}
		if err := sendAll(e, send); err != nil {
			return 0, err
		}
	}
	if errors.Is(err, kv.ErrCompacted) {
		return h.sendState(ctx, document, send)
	}
	return last.Modified, err
}

// maxMissed is the maximum number of events that are read one by one. Tests change it.
var maxMissed = 1000

// missed returns the revisions of a document's events after a revision, the newest first. It reads them one by one, because etcd delays all
// writes while it looks for the past of a watch. known is false if there are too many, or if there may be others before the key was made.
func (h *Hub) missed(ctx context.Context, last kv.Entry, after int64) (revisions []int64, known bool, err error) {
	former, err := h.store.GetAt(ctx, last.Key, max(after, 1))
	if err != nil {
		return nil, false, err
	}
	for e := last; e.Modified > after; {
		if revisions = append(revisions, e.Modified); len(revisions) > maxMissed {
			return nil, false, nil
		}
		if e.Created == e.Modified {
			list := decode(e)
			// A lock is the first event of a name, unless the document had events and was deleted.
			return revisions, !former.Found() && len(list) > 0 && list[0].Type == Locked, nil
		}
		if e, err = h.store.GetAt(ctx, last.Key, e.Modified-1); err != nil {
			return nil, false, err
		}
	}
	return revisions, true, nil
}

// watchPast is replay with watches of the past. While one of them runs, nothing is sent: other clients wait for it, and this client may be
// slow.
func (h *Hub) watchPast(ctx context.Context, document string, last kv.Entry, after int64, send func([]byte) error) (int64, error) {
	for after < last.Modified {
		past, err := h.lookBack(ctx, last, after)
		if errors.Is(err, kv.ErrCompacted) {
			return h.sendState(ctx, document, send)
		}
		if err != nil {
			return after, err
		}
		for _, e := range past {
			if err := sendAll(e, send); err != nil {
				return after, err
			}
			after = e.Modified
		}
	}
	return after, nil
}

// maxRest bounds the pause after a watch of the past. The watch may have taken long because the store was away.
const maxRest = 10 * time.Second

// lookBack returns the next changes of a document after a revision. It stops at last, or after about 10*maxMissed changes (a few
// megabytes). One client at a time may look back. The next one waits nine times as long as the look took, at most maxRest, so that writes have
// most of the time.
func (h *Hub) lookBack(ctx context.Context, last kv.Entry, after int64) (past []kv.Entry, err error) {
	select {
	case h.looking <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	begun := time.Now()
	defer func() { time.AfterFunc(min(9*time.Since(begun), maxRest), func() { <-h.looking }) }()
	err = h.store.Watch(ctx, last.Key, after, func(changes []kv.Change) error {
		for _, c := range changes {
			if c.Key == last.Key { // and not a document whose name begins with this document's name
				past = append(past, c.Entry)
			}
		}
		if len(past) > 10*maxMissed || changes[len(changes)-1].Modified >= last.Modified {
			return errCaughtUp
		}
		return nil
	})
	if errors.Is(err, errCaughtUp) {
		err = nil
	}
	return past, err
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
	e.Type, e.Document, e.RoomID = State, document, document
	return e.Revision, send(encode(e))
}
