package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/rooms"
)

// meeting is one simulated run of the server's rooms: people meet in a few rooms, over several instances on one store.
// Sockets end in every way, instances are killed and cut off from the store, and the store fails, stalls and makes changes late.
type meeting struct {
	w      *world
	dice   *dice
	store  *service // its store and the faults on the way to it
	halls  []*roomServer
	calmed chan struct{} // closed when no fault begins any more
}

// roomServer is an instance of the server, or a place for one that is down.
type roomServer struct {
	m    *meeting
	name string

	mu    sync.Mutex
	up    *opened // nil while it is down
	cutTo time.Time
}

// opened is one process of the server.
type opened struct {
	rooms  *rooms.Rooms
	client *kv.Store
	http   *http.Server
	conns  chan net.Conn
	dead   chan struct{}

	mu   sync.Mutex
	open []net.Conn
}

// RunRooms simulates one run of the rooms. It must be called in a bubble of testing/synctest, and leaves no goroutine there.
func RunRooms(seed uint64, verbose bool) Result {
	w := newWorld(seed)
	w.verbose = verbose
	m := &meeting{w: w, dice: w.dice("meeting"), calmed: make(chan struct{}),
		store: &service{w: w, dice: w.dice("service"), store: memory.New()}}
	m.store.look = m.store.store.Client(nil)
	for i := range 1 + m.dice.n(3) {
		h := &roomServer{m: m, name: fmt.Sprint("server", i)}
		h.start()
		m.halls = append(m.halls, h)
	}
	names := make([]string, 1+m.dice.n(3))
	for i := range names {
		names[i] = fmt.Sprint("room-", i)
	}
	var people []*guest
	var living, faults sync.WaitGroup
	for i := range 2 + m.dice.n(6) {
		name := fmt.Sprint("guest", i)
		p := &guest{m: m, name: name, dice: w.dice(name), rooms: names, sent: []string{""}, floors: make(map[string]int)}
		people = append(people, p)
		living.Go(p.live)
	}
	faults.Go(m.trouble)
	time.Sleep(m.dice.between(10*time.Second, 5*time.Minute))
	w.note("run", "calms down")
	close(m.calmed)
	faults.Wait()
	living.Wait()
	m.end(people)
	return Result{Seed: seed, Findings: w.findings, Trace: w.trace, Counts: w.counts}
}

func (m *meeting) calm() bool {
	select {
	case <-m.calmed:
		return true
	default:
		return false
	}
}

// pause waits. It returns false once the run has calmed down.
func (m *meeting) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return !m.calm()
	case <-m.calmed:
		return false
	}
}

// trouble causes faults, one after the other.
func (m *meeting) trouble() {
	every := m.dice.between(500*time.Millisecond, time.Minute)
	for m.pause(m.dice.between(every/4, 2*every)) {
		h := m.halls[m.dice.n(len(m.halls))]
		switch m.dice.n(4) {
		case 0:
			m.w.note("store", "is ill")
			m.store.set(pick(m.dice, 0.02, 0.1, 0.4), pick(m.dice, 0, time.Second, 8*time.Second))
			m.pause(m.dice.between(100*time.Millisecond, 40*time.Second))
			m.store.set(0, 0)
		case 1:
			m.w.note(h.name, "is killed")
			h.kill()
			m.pause(m.dice.between(10*time.Millisecond, time.Minute))
			h.start()
		case 2:
			long := m.dice.between(time.Second, time.Minute)
			m.w.note(h.name, "is cut off from the store for %s", long)
			h.cut(long)
		case 3:
			m.w.note(h.name, "loses its sockets")
			h.drop()
		}
	}
	m.store.set(0, 0)
	for _, h := range m.halls {
		h.cut(0)
	}
}

func (h *roomServer) cut(long time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cutTo = time.Now().Add(long)
}

// link is the connection of a process to the store. While the instance is cut off, no request arrives.
func (h *roomServer) link(dead <-chan struct{}) memory.Link {
	through := h.m.store.link(dead)
	return func(ctx context.Context, request string) (before, after error) {
		h.mu.Lock()
		away := time.Until(h.cutTo) > 0
		h.mu.Unlock()
		if !away {
			return through(ctx, request)
		}
		timer := time.NewTimer(h.m.dice.between(time.Millisecond, time.Second))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		case <-dead:
		}
		return memory.ErrLost, nil
	}
}

func (h *roomServer) start() {
	o := &opened{conns: make(chan net.Conn), dead: make(chan struct{})}
	o.client = h.m.store.store.Client(h.link(o.dead))
	var err error
	o.rooms, err = rooms.New(rooms.Config{Store: o.client, Identify: func(_ http.ResponseWriter, r *http.Request) (rooms.Client, bool) {
		return rooms.Client{Session: r.Header.Get("Session")}, true
	}})
	if err != nil {
		panic(err)
	}
	o.http = &http.Server{Handler: o.rooms, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go func() { _ = o.http.Serve(o) }()
	h.mu.Lock()
	h.up = o
	h.mu.Unlock()
}

// kill ends the process at once. Nothing that it does afterwards reaches the store.
func (h *roomServer) kill() {
	h.mu.Lock()
	o := h.up
	h.up = nil
	h.mu.Unlock()
	close(o.dead)
	o.drop()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	_ = o.rooms.Close(ctx) // its last change does not arrive
	_ = o.http.Close()
	_ = o.client.Close()
}

func (h *roomServer) running() *opened {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.up
}

func (h *roomServer) drop() {
	if o := h.running(); o != nil {
		o.drop()
	}
}

// drop breaks all connections.
func (o *opened) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.open {
		_ = c.Close()
	}
	o.open = nil
}

// dial connects to the instance.
func (o *opened) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	mine, theirs := net.Pipe()
	select {
	case o.conns <- theirs:
	case <-o.dead:
		return nil, errBroken
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	o.mu.Lock()
	o.open = append(o.open, theirs)
	o.mu.Unlock()
	return mine, nil
}

// Accept, Close and Addr implement [net.Listener].
func (o *opened) Accept() (net.Conn, error) {
	select {
	case c := <-o.conns:
		return c, nil
	case <-o.dead:
		return nil, net.ErrClosed
	}
}

func (o *opened) Close() error { return nil }

func (o *opened) Addr() net.Addr { return &net.UnixAddr{Name: "simulated"} }

// any returns a running instance.
func (m *meeting) any(d *dice) *opened {
	var up []*opened
	for _, h := range m.halls {
		if o := h.running(); o != nil {
			up = append(up, o)
		}
	}
	if len(up) == 0 {
		return nil
	}
	return up[d.n(len(up))]
}

// restTime is longer than a late transaction takes, and than the server may need to notice sockets that vanished and instances that died.
const restTime = 2 * time.Minute

// end lets some guests leave for good and the others answer, without faults. Then the rooms have exactly those guests and
// answers, and nothing else is left in the store.
func (m *meeting) end(people []*guest) {
	var last sync.WaitGroup
	for _, p := range people {
		if p.stays = m.dice.chance(0.7); p.stays {
			last.Go(p.settle)
		} else {
			p.leave(true)
		}
	}
	last.Wait()
	time.Sleep(restTime)
	m.compare(people)
	for _, p := range people {
		p.leave(true)
	}
	for _, h := range m.halls {
		h.kill()
	}
	_ = m.store.look.Close()
	m.store.store.Close()
}

// compare looks at the store and at what the guests see.
func (m *meeting) compare(people []*guest) {
	var tokens, wanted []string
	for _, p := range people {
		if p.stays {
			tokens = append(tokens, p.token)
			wanted = append(wanted, p.room)
			p.seesAll(people)
		}
	}
	slices.Sort(tokens)
	slices.Sort(wanted)
	for _, prefix := range []string{"user_rooms/", "socket_instances/"} {
		if got := m.names(prefix); !slices.Equal(got, tokens) {
			m.w.found("leftover", "%s has %v, and the guests have %v", prefix, got, tokens)
		}
	}
	for _, prefix := range []string{"rooms/", "room_updates/"} {
		if got := m.names(prefix); !slices.Equal(got, slices.Compact(slices.Clone(wanted))) {
			m.w.found("leftover", "%s has %v, and the guests are in %v", prefix, got, wanted)
		}
	}
	if got := m.names("instances/"); len(got) != len(m.halls) {
		m.w.found("leftover", "%d instances run, and the store has %d", len(m.halls), len(got))
	}
}

// names returns the keys under a prefix, without it, in order.
func (m *meeting) names(prefix string) []string {
	found, err := m.store.look.Keys(context.Background(), prefix)
	if err != nil {
		m.w.found("simulation", "the store cannot be read: %v", err)
	}
	names := []string{}
	for _, key := range found {
		names = append(names, strings.TrimPrefix(key, prefix))
	}
	slices.Sort(names)
	return names
}

// heardMessage is a message from the server.
type heardMessage struct {
	Type, UserToken, Error string
	Revision               int64
	Room                   struct {
		ID           string
		IsOpen       bool
		Participants []heardGuest
	}
}

type heardGuest struct {
	Name, Answer      string
	HasAnswered, IsMe bool
	UserNumber        int
}

func decodeMessage(data []byte) (h heardMessage, err error) {
	if err = json.Unmarshal(data, &h); err == nil && h.Type == "" {
		err = errors.New("a message without a type")
	}
	return h, err
}
