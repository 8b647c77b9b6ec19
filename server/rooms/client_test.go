package rooms

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// limit is how long a test waits for an expected message. patience is how long it checks that no message comes.
const (
	limit    = 30 * time.Second
	patience = 150 * time.Millisecond
)

// instance is one server on a store.
type instance struct {
	*Rooms
	server *httptest.Server
	url    string
}

var running atomic.Int64 // servers that are not closed yet

var ourReceivers = regexp.MustCompile(`/server/rooms\.\(\*(Rooms|socket|feed|sweeper|presence|table)\)`)

// ours returns the stacks of the goroutines that serve something. It does not count those of the store.
func ours() []string {
	stacks := make([]byte, 16<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return slices.DeleteFunc(strings.Split(string(stacks), "\n\n"), func(stack string) bool {
		return !ourReceivers.MatchString(stack)
	})
}

// start runs a server until the test ends. The cookie "session" is the session, as in a browser.
func start(t testing.TB, config Config) *instance {
	t.Helper()
	config.Identify = func(w http.ResponseWriter, r *http.Request) (Client, bool) {
		cookie, err := r.Cookie("session")
		if err != nil {
			return Client{}, true
		}
		if cookie.Value == "stopped" {
			http.Error(w, "Too many requests.", http.StatusTooManyRequests)
			return Client{}, false
		}
		return Client{Session: cookie.Value}, true
	}
	rooms, err := New(config)
	require.NoError(t, err)
	server := httptest.NewServer(rooms)
	running.Add(1)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		require.NoError(t, rooms.Close(ctx))
		server.Close()
		if running.Add(-1) == 0 {
			eventually(t, "a goroutine of a server is left", func() bool { return len(ours()) == 0 })
		}
	})
	return &instance{rooms, server, server.URL}
}

// pair starts two servers on one store, each with its own connection to it.
func pair(t testing.TB, config Config) (a, b *instance, store *kv.Store) {
	t.Helper()
	store = kvtest.Open(t)
	config.Store = store
	a = start(t, config)
	config.Store = kvtest.Again(t, store)
	return a, start(t, config), store
}

// heard is any message from the server.
type heard struct {
	roomInfo
	UserToken      string
	RoomID         string
	IsExistTheRoom *bool
	Error, Message string
	text           string
}

// client is one tab of a browser.
type client struct {
	t     testing.TB
	conn  *websocket.Conn
	token string
	room  string
	inbox chan string // closed at the end of the socket
	heard []string    // all messages that the test has taken from inbox
}

type dialOption func(*websocket.DialOptions)

// session gives the socket this session cookie.
func session(name string) dialOption {
	return func(o *websocket.DialOptions) { o.HTTPHeader.Set("Cookie", "session="+name) }
}

// connect opens a socket and waits for its token.
func connect(t testing.TB, i *instance, options ...dialOption) *client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	o := &websocket.DialOptions{HTTPHeader: http.Header{}}
	for _, option := range options {
		option(o)
	}
	conn, _, err := websocket.Dial(ctx, i.url+"/ws", o)
	require.NoError(t, err)
	conn.SetReadLimit(1 << 22)
	c := &client{t: t, conn: conn, inbox: make(chan string, 4096)}
	go c.listen()
	t.Cleanup(func() { _ = conn.CloseNow() })
	first := c.next()
	require.Equal(t, "connected", first.Type, first.text)
	require.True(t, validToken(first.UserToken))
	c.token = first.UserToken
	return c
}

func (c *client) listen() {
	defer close(c.inbox)
	for {
		_, data, err := c.conn.Read(context.Background())
		if err != nil {
			return
		}
		c.inbox <- string(data)
	}
}

// text waits for the next message.
func (c *client) text() string {
	c.t.Helper()
	select {
	case text, ok := <-c.inbox:
		require.True(c.t, ok, "the socket has ended")
		return text
	case <-time.After(limit):
		require.Fail(c.t, "nothing came")
		panic("unreachable")
	}
}

// next waits for the next message and decodes it.
func (c *client) next() heard {
	c.t.Helper()
	h := heard{text: c.text()}
	c.heard = append(c.heard, h.text)
	if h.text == "pong" {
		h.Type = "pong"
		return h
	}
	require.NoError(c.t, json.Unmarshal([]byte(h.text), &h), h.text)
	return h
}

// drain waits for the end of the socket.
func (c *client) drain() {
	for text := range c.inbox {
		c.heard = append(c.heard, text)
	}
}

// info waits for the next message, which must be a room state.
func (c *client) info() heard {
	c.t.Helper()
	h := c.next()
	require.Equal(c.t, "roomInfo", h.Type, h.text)
	return h
}

// until waits for the first state of the room for which the condition holds.
func (c *client) until(what string, condition func(roomInfo) bool) heard {
	c.t.Helper()
	for {
		if h := c.info(); condition(h.roomInfo) {
			return h
		}
	}
}

// quiet checks that no message comes.
func (c *client) quiet(why string) {
	c.t.Helper()
	select {
	case text, ok := <-c.inbox:
		require.Fail(c.t, why, "ended: %v, came: %s", !ok, text)
	case <-time.After(patience):
	}
}

func (c *client) write(text string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	require.NoError(c.t, c.conn.Write(ctx, websocket.MessageText, []byte(text)))
}

// send sends a message with the client's own token.
func (c *client) send(kind string, fields map[string]any) {
	c.t.Helper()
	message := map[string]any{"type": kind, "userToken": c.token}
	for name, value := range fields {
		message[name] = value
	}
	c.write(string(marshal(message)))
}

// create makes a room and returns its id.
func (c *client) create(name string) string {
	c.t.Helper()
	c.send("createRoom", map[string]any{"userName": name})
	created := c.next()
	require.Equal(c.t, "roomCreated", created.Type, created.text)
	c.room = created.RoomID
	return c.room
}

func (c *client) enter(id, name string) {
	c.t.Helper()
	c.room = id
	c.send("enterTheRoom", map[string]any{"roomId": id, "userName": name})
}

func (c *client) answer(text string) {
	c.t.Helper()
	c.send("answer", map[string]any{"roomId": c.room, "answer": text})
}

// refused waits for an error with a code.
func (c *client) refused(code string) {
	c.t.Helper()
	h := c.next()
	require.Equal(c.t, "error", h.Type, h.text)
	require.Equal(c.t, code, h.Error, h.text)
	require.NotEmpty(c.t, h.Message)
}

// close closes the socket as a browser does.
func (c *client) close() { _ = c.conn.Close(websocket.StatusGoingAway, "") }

// names returns the participants of the room, each as name=answer.
func names(r roomInfo) []string {
	list := []string{}
	for _, p := range r.Room.Participants {
		list = append(list, p.Name+"="+p.Answer)
	}
	return list
}

// keys returns what the store holds under a prefix.
func keys(t testing.TB, store interface {
	Range(ctx context.Context, prefix string) ([]kv.Entry, int64, error)
}, prefix string) map[string]string {
	t.Helper()
	entries, _, err := store.Range(t.Context(), prefix)
	require.NoError(t, err)
	found := map[string]string{}
	for _, e := range entries {
		found[e.Key[len(prefix):]] = string(e.Value)
	}
	return found
}

// eventually waits for a condition that no message announces, such as a key in the store or a count.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, limit, 5*time.Millisecond, what)
}
