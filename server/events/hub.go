package events

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// queueLength is how many events may wait for one slow reader before it is cut off; it can resume.
const queueLength = 256

// ErrSlow means that a reader did not keep up.
var ErrSlow = errors.New("the reader is too slow; resume from the last revision seen")

// Hub follows the events of all documents and hands them to those who listen at this server.
type Hub struct {
	store *kv.Store
	// state reads the whole present state of a document, with the revision it is of.
	state   func(context.Context, string) (Event, error)
	stop    context.CancelFunc
	running sync.WaitGroup

	mu        sync.Mutex
	listeners map[string]map[*listener]struct{} // by room
	recent    recent
}

// message is an event as it is sent: encoded once for all listeners.
type message struct {
	revision int64
	text     []byte
}

type listener struct {
	queue chan message
	slow  chan struct{} // closed when the queue overflowed
}

// Open begins to follow the events that come from now on. State is asked where the past is not known any more.
func Open(ctx context.Context, store *kv.Store, state func(context.Context, string) (Event, error)) (*Hub, error) {
	_, revision, err := store.Get(ctx, prefix)
	if err != nil {
		return nil, err
	}
	h := &Hub{store: store, state: state, listeners: map[string]map[*listener]struct{}{}}
	h.recent.begin(revision)
	following, stop := context.WithCancel(context.Background())
	h.stop = stop
	h.running.Go(func() { h.follow(following, revision) })
	return h, nil
}

// Close stops following; streams that still run get nothing more.
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
		// Cut off for longer than the store remembers: nobody here can know what was missed, so all start again.
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

// cutOff ends all streams; what comes after the revision is known again.
func (h *Hub) cutOff(revision int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recent.begin(revision)
	for room, listeners := range h.listeners {
		for l := range listeners {
			h.drop(room, l)
		}
	}
}

// listen begins to listen and returns what there was before and after a revision, if that is known here: then nothing
// falls between the two, and nothing comes twice.
func (h *Hub) listen(room string, after int64) (l *listener, past []kv.Entry, known bool) {
	l = &listener{make(chan message, queueLength), make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	past, known = h.recent.after(room, after)
	if h.listeners[room] == nil {
		h.listeners[room] = map[*listener]struct{}{}
	}
	h.listeners[room][l] = struct{}{}
	return l, past, known
}

func (h *Hub) leave(room string, l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners[room], l)
	if len(h.listeners[room]) == 0 {
		delete(h.listeners, room)
	}
}
