package rooms

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/sockets"
)

// Rooms serves the sockets of one instance. Its methods may be called from any goroutine.
type Rooms struct {
	config  Config
	table   *table
	counts  counts
	sweeper *sweeper

	ctx        context.Context // ends with Close
	stop       context.CancelFunc
	serving    sync.WaitGroup // tasks of a socket or a participant
	background sync.WaitGroup // tasks that run until ctx ends

	mu      sync.Mutex
	closing bool
	sockets map[string]*socket
	feeds   map[string]*feed
	graces  map[string]*time.Timer // by token; participants whose socket closed less than Grace ago
}

// Stats are counts for monitoring.
type Stats struct {
	Sockets int // currently open
	Rooms   int // currently watched
	// Conflicts counts changes that were computed again. Resumes counts watches that began again.
	Conflicts, Resumes int64
}

type counts struct{ conflicts, resumes atomic.Int64 }

// New starts the tasks that serve rooms. [Rooms.Close] ends them. The store must stay open until then.
func New(config Config) (*Rooms, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &Rooms{
		config: config, ctx: ctx, stop: stop,
		sockets: map[string]*socket{}, feeds: map[string]*feed{}, graces: map[string]*time.Timer{},
	}
	r.table = &table{instance: config.Instance, queue: queue{
		store: config.Store, now: config.Now, limit: config.StoreLimit, waiting: map[string][]*job{},
		conflict: func() { r.counts.conflicts.Add(1) },
	}}
	r.sweeper = newSweeper(r)
	r.sweeper.start(ctx, r.background.Go)
	return r, nil
}

// ServeHTTP upgrades to a WebSocket and serves it until it ends. It refuses origins other than its own and the
// configured ones with 403.
func (r *Rooms) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if !r.begin() {
		(&refusal{"unavailable", "The server is stopping."}).answer(w, http.StatusServiceUnavailable)
		return
	}
	defer r.serving.Done()
	client, ok := r.config.Identify(w, request)
	if !ok {
		return
	}
	if !strings.EqualFold(request.Header.Get("Upgrade"), "websocket") {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "websocket")
		(&refusal{"upgrade_required", "Rooms are a WebSocket."}).answer(w, http.StatusUpgradeRequired)
		return
	}
	conn, err := websocket.Accept(w, request, &websocket.AcceptOptions{
		OriginPatterns: r.config.Origins, Subprotocols: r.config.Subprotocols, OnPingReceived: sockets.Pongs(),
	})
	if err != nil {
		return // Accept has answered
	}
	s := newSocket(r, conn, client)
	if err := r.open(s); err != nil {
		r.config.Log.Warn("a socket could not be registered", "error", err)
		_ = conn.Close(websocket.StatusTryAgainLater, errUnavailable.message)
		return
	}
	defer r.left(s)
	s.tell(connectedMessage(s.token))
	s.serve(r.ctx)
}

// begin registers a task, unless the server is stopping.
func (r *Rooms) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return false
	}
	r.serving.Add(1)
	return true
}

func (r *Rooms) open(s *socket) error {
	ctx, cancel := context.WithTimeout(r.ctx, r.config.StoreLimit)
	defer cancel()
	r.mu.Lock()
	r.sockets[s.token] = s
	r.mu.Unlock()
	err := r.table.register(ctx, s.token)
	if err != nil {
		r.mu.Lock()
		delete(r.sockets, s.token)
		r.mu.Unlock()
		r.sweeper.seen.stray(s.token) // the store may have made the change
	}
	return err
}

// carryOut carries out a valid message.
func (r *Rooms) carryOut(ctx context.Context, s *socket, m message) error {
	if m.Type == typeCreate {
		m.RoomID = uuid.NewString()
	}
	if m.Type == typeExists && !s.mayDo(m.RoomID, false) {
		s.tell(existsMessage(false))
		return nil
	}
	if m.Type != typeExists && !s.mayDo(m.RoomID, true) {
		return errNotAllowed
	}
	switch m.Type {
	case typeCreate:
		return r.move(s, func() (string, int64, error) {
			id := m.RoomID
			revision, err := r.table.create(ctx, id, s.participant(m.Name))
			if err == nil {
				s.tell(createdMessage(id))
			}
			return id, revision, err
		})
	case typeEnter:
		return r.move(s, func() (string, int64, error) {
			revision, err := r.table.enter(ctx, m.RoomID, s.participant(m.Name), m.Previous, m.Create)
			return m.RoomID, revision, err
		})
	case typeExists:
		exists, err := r.table.exists(ctx, m.RoomID)
		if err != nil {
			return err
		}
		s.tell(existsMessage(exists))
	case typeAnswer:
		_, err := r.table.answer(ctx, m.RoomID, s.token, m.Answer.value)
		return err
	case typeClear:
		if m.Everyone {
			_, err := r.table.clearAll(ctx, m.RoomID, s.token)
			return err
		}
		_, err := r.table.answer(ctx, m.RoomID, s.token, "")
		return err
	}
	return nil
}

// move moves a socket into a room and out of its former room.
func (r *Rooms) move(s *socket, enter func() (id string, revision int64, err error)) error {
	s.entered = true // also after an error: the store may have made the change
	former := s.feed
	inside := former != nil && former.move(s, true)
	id, revision, err := enter()
	switch {
	case err == nil:
		r.follow(s, id, revision)
	case inside && !former.move(s, false):
		s.tell(errRemoved.encoded()) // the store has made the change, and the former room was silent about it
	}
	return err
}

// refusalFor returns the refusal that the client receives for an error.
func (r *Rooms) refusalFor(err error) *refusal {
	var refused *refusal
	if !errors.As(err, &refused) {
		refused = errUnavailable
	}
	if refused == errUnavailable {
		r.config.Log.Warn("a message could not be carried out", "error", err)
	}
	return refused
}

// follow subscribes a socket to the states of a room from a revision on, and ends its subscription to another room.
func (r *Rooms) follow(s *socket, id string, revision int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.feed != nil && s.feed.id != id {
		r.unfollow(s)
	}
	f := r.feeds[id]
	if f == nil {
		f = r.newFeed(id, revision)
	}
	s.feed = f
	f.join(s, revision)
}

// roomOf returns the last room that a socket entered, or "".
func (r *Rooms) roomOf(s *socket) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.feed == nil {
		return ""
	}
	return s.feed.id
}

// newFeed starts the watch of a room. The caller holds r.mu.
func (r *Rooms) newFeed(id string, revision int64) *feed {
	ctx, stop := context.WithCancel(r.ctx)
	f := &feed{id: id, stop: stop, members: map[string]*member{}, log: r.config.Log}
	f.resumed = func() { r.counts.resumes.Add(1) }
	f.vacant = func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.endIfEmpty(f)
	}
	r.feeds[id] = f
	r.background.Go(func() { f.run(ctx, r.config.Store, revision) })
	return f
}

// unfollow ends the subscription of a socket. The watch stops with the last one. The caller holds r.mu.
func (r *Rooms) unfollow(s *socket) {
	if s.feed != nil {
		s.feed.part(s)
		r.endIfEmpty(s.feed)
		s.feed = nil
	}
}

// endIfEmpty stops the watch of a room without local participants. The caller holds r.mu.
func (r *Rooms) endIfEmpty(f *feed) {
	if r.feeds[f.id] == f && f.empty() {
		delete(r.feeds, f.id)
		f.stop()
	}
}

// left runs after a socket has ended. Its participant keeps its place for the grace period.
func (r *Rooms) left(s *socket) {
	r.mu.Lock()
	delete(r.sockets, s.token)
	r.unfollow(s)
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), r.config.StoreLimit)
	defer cancel()
	if err := r.table.unregister(ctx, s.token); err != nil {
		r.sweeper.seen.stray(s.token)
		r.config.Log.Warn("a socket could not be unregistered; the sweeper tries again", "error", err)
	}
	if !s.entered {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return // the participant may come back at another instance; otherwise the sweeper there removes it
	}
	r.graces[s.token] = time.AfterFunc(r.config.Grace, func() { r.graceOver(s.token) })
}

// graceOver removes a participant that did not come back from its room. If the store fails, the sweeper removes it
// later.
func (r *Rooms) graceOver(token string) {
	r.mu.Lock()
	_, ours := r.graces[token]
	delete(r.graces, token)
	begun := ours && !r.closing
	if begun {
		r.serving.Add(1)
	}
	r.mu.Unlock()
	if !begun {
		return
	}
	defer r.serving.Done()
	ctx, cancel := context.WithTimeout(r.ctx, r.config.StoreLimit)
	defer cancel()
	if err := r.table.leave(ctx, token, r.connected); err != nil {
		r.config.Log.Warn("a participant could not leave its room", "error", err)
	}
}

// connected reports whether a token's socket is open here.
func (r *Rooms) connected(token string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sockets[token] != nil
}

// tokens returns the tokens of the open sockets.
func (r *Rooms) tokens() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.sockets))
}

// Stats returns the current counts.
func (r *Rooms) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Stats{Sockets: len(r.sockets), Rooms: len(r.feeds),
		Conflicts: r.counts.conflicts.Load(), Resumes: r.counts.resumes.Load()}
}

// handshake is how long sockets may take to answer the close message.
const handshake = time.Second

// Close sends every socket the close code for a server that stops. It returns when all tasks have ended, or with ctx's error.
// The participants keep their places, so they may come back at another instance.
func (r *Rooms) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closing = true
	for token, timer := range r.graces {
		timer.Stop()
		delete(r.graces, token)
	}
	for _, s := range r.sockets {
		r.serving.Go(func() { _ = s.conn.Close(websocket.StatusGoingAway, "The server is stopping.") })
	}
	r.mu.Unlock()

	patience, cancel := context.WithTimeout(ctx, handshake)
	defer cancel()
	_ = wait.Group(patience, &r.serving)
	r.stop()
	if err := errors.Join(wait.Group(ctx, &r.serving), wait.Group(ctx, &r.background), wait.Group(ctx, &r.table.workers)); err != nil {
		return err
	}
	_, err := r.config.Store.Commit(ctx, kv.Txn{Then: []kv.Op{kv.Delete(instancePrefix + r.config.Instance)}})
	return err
}
