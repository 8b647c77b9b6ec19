package events

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// queueLength is how many events may wait for a slow reader. Above it the hub ends the stream, and the reader can
// resume.
const queueLength = 256

// ErrSlow means that a reader is too slow.
var ErrSlow = errors.New("the reader is too slow; resume from the last revision seen")

// Hub follows the events of all documents and sends them to the listeners at this server.
type Hub struct {
	store *kv.Store
	// state reads the present state of a document, with its revision.
	state   func(context.Context, string) (Event, error)
	stop    context.CancelFunc
	running sync.WaitGroup
	looking chan struct{} // has an item while a watch looks for past events, and during its rest

	mu        sync.Mutex
	listeners map[string]map[*listener]struct{} // by document
	recent    recent
}

// message is an encoded event, shared by all listeners.
type message struct {
	revision int64
	text     []byte
}

type listener struct {
	queue chan message
	slow  chan struct{} // closed when the queue overflowed
}

// Open starts to follow new events. state provides the present state when past events are no longer known.
func Open(ctx context.Context, store *kv.Store, state func(context.Context, string) (Event, error)) (*Hub, error) {
	_, revision, err := store.Get(ctx, prefix)
	if err != nil {
		return nil, err
	}
	h := &Hub{store: store, state: state, looking: make(chan struct{}, 1), listeners: map[string]map[*listener]struct{}{}}
	h.recent.begin(revision)
	following, stop := context.WithCancel(context.Background())
	h.stop = stop
	h.running.Go(func() { h.follow(following, revision) })
	return h, nil
}

// Close stops following. Running streams receive nothing more.
func (h *Hub) Close() {
	h.stop()
	h.running.Wait()
}

func (h *Hub) follow(ctx context.Context, revision int64) {
	for ctx.Err() == nil {
		err := h.store.Watch(ctx, prefix, revision, func(changes []kv.Change) error {
			h.deliver(changes)
			revision = changes[len(changes)-1].Modified
			return nil
		})
		if !errors.Is(err, kv.ErrCompacted) {
			continue
		}
		// The watch was interrupted for longer than the store's history. The missed events are unknown, so all
		// streams end and start again.
		if _, now, err := h.store.Get(ctx, prefix); err == nil {
			revision = now
			h.cutOff(now)
		}
	}
}

func (h *Hub) deliver(changes []kv.Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range changes {
		if c.Deleted {
			continue
		}
		h.recent.add(c.Entry)
		listeners := h.listeners[strings.TrimPrefix(c.Key, prefix)]
		if len(listeners) == 0 {
			continue
		}
		for _, e := range decode(c.Entry) {
			m := message{e.Revision, encode(e)}
			for l := range listeners {
				select {
				case l.queue <- m:
				default:
					h.drop(c.Key, l)
				}
			}
		}
	}
}

func (h *Hub) drop(key string, l *listener) {
	close(l.slow)
	delete(h.listeners[strings.TrimPrefix(key, prefix)], l)
}

// cutOff ends all streams. Events after the revision are known again.
func (h *Hub) cutOff(revision int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recent.begin(revision)
	for document, listeners := range h.listeners {
		for l := range listeners {
			h.drop(document, l)
		}
	}
}

// listen adds a listener and returns the changes after a revision, if the hub still knows them. No event is missed
// between the two, and none comes twice.
func (h *Hub) listen(document string, after int64) (l *listener, past []kv.Entry, known bool) {
	l = &listener{make(chan message, queueLength), make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	past, known = h.recent.after(document, after)
	if h.listeners[document] == nil {
		h.listeners[document] = map[*listener]struct{}{}
	}
	h.listeners[document][l] = struct{}{}
	return l, past, known
}

func (h *Hub) leave(document string, l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners[document], l)
	if len(h.listeners[document]) == 0 {
		delete(h.listeners, document)
	}
}
