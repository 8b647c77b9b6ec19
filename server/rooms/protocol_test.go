package rooms

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

type wrongRequest struct {
	what, kind string
	fields     map[string]any
	code       string
}

// wrongRequests has a request for every error of the protocol's table. The room is of a participant with the token.
func wrongRequests(id, token string) []wrongRequest {
	entering := map[string]any{"roomId": id, "userName": "Ann"}
	with := func(fields map[string]any, name string, value any) map[string]any {
		changed := map[string]any{name: value}
		for k, v := range fields {
			if k != name {
				changed[k] = v
			}
		}
		return changed
	}
	return []wrongRequest{
		{"an unknown type", "dance", nil, "unknown_type"},
		{"a message that only the server sends", "connected", nil, "unknown_type"},
		{"a room without a name", "createRoom", nil, "invalid_request"},
		{"a room for another", "createRoom", map[string]any{"userName": "Ann", "userToken": token}, "foreign_token"},
		{"a token nobody has", "createRoom", map[string]any{"userName": "Ann", "userToken": theirs}, "foreign_token"},
		{"asking for nothing", "isExistTheRoom", nil, "invalid_request"},
		{"entering no room", "enterTheRoom", with(entering, "roomId", "gone"), "room_not_found"},
		{"entering another key", "enterTheRoom", with(entering, "roomId", "../"+id), "invalid_request"},
		{"entering with a long name", "enterTheRoom", with(entering, "userName", strings.Repeat("n", 25)), "invalid_request"},
		{"entering as another", "enterTheRoom", with(entering, "userToken", token), "foreign_token"},
		{"answering before entering", "answer", map[string]any{"roomId": id, "answer": "x"}, "not_in_room"},
		{"answering for another", "answer", map[string]any{"roomId": id, "answer": "x", "userToken": token}, "foreign_token"},
		{"answering nowhere", "answer", map[string]any{"roomId": "gone", "answer": "x"}, "room_not_found"},
		{"a long answer", "answer", map[string]any{"roomId": id, "answer": strings.Repeat("x", 257)}, "invalid_request"},
		{"no answer", "answer", map[string]any{"roomId": id}, "invalid_request"},
		{"clearing before entering", "clearAnswer", map[string]any{"roomId": id}, "not_in_room"},
		{"clearing everybody's before entering", "clearAnswer", map[string]any{"roomId": id, "everyone": true}, "not_in_room"},
		{"clearing for another", "clearAnswer", map[string]any{"roomId": id, "userToken": token}, "foreign_token"},
	}
}

// One socket stays open through every error of the protocol's table.
func TestErrorsLeaveTheSocketOpen(t *testing.T) {
	a := start(t, Config{Store: kvtest.Open(t)})
	ann, ben := connect(t, a), connect(t, a)
	id := ben.create("Ben")
	ben.info()
	for _, row := range wrongRequests(id, ben.token) {
		ann.send(row.kind, row.fields)
		t.Log(row.what)
		ann.refused(row.code)
	}
	for _, text := range []string{"", "{", "null", "[]", `"createRoom"`, `{"type":7}`, "PING", "ping ", "\xff"} {
		ann.write(text)
		ann.refused("invalid_request")
	}
	require.NoError(t, ann.conn.Write(t.Context(), websocket.MessageBinary, []byte(`{"type":"createRoom"}`)))
	ann.refused("invalid_request")
	ann.write(strings.Repeat(" ", maxMessage+1))
	ann.refused("message_too_large")

	ann.write("ping")
	assert.Equal(t, "pong", ann.next().Type)
	ann.send("isExistTheRoom", map[string]any{"roomId": "gone"})
	assert.False(t, *ann.next().IsExistTheRoom)
	ben.quiet("none of it is anybody else's business")
	ann.enter(id, "Ann")
	assert.Equal(t, []string{"Ben=", "Ann="}, names(ann.info().roomInfo))
}

// A message never contains a token other than that of the socket that receives it.
func TestTokensStayWithTheirSocket(t *testing.T) {
	a, b, _ := pair(t, Config{Grace: 50 * time.Millisecond})
	ann, ben, cleo := connect(t, a), connect(t, b), connect(t, a)
	id := ann.create("Ann")
	for _, c := range []*client{ben, cleo} {
		c.enter(id, "somebody")
		c.until("all", func(r roomInfo) bool { return len(r.Room.Participants) > 1 })
		c.answer("x")
	}
	ann.answer("y")
	ann.until("open", func(r roomInfo) bool { return r.Room.IsOpen && len(r.Room.Participants) == 3 })
	ben.close()
	ann.until("left", func(r roomInfo) bool { return len(r.Room.Participants) == 2 })
	all := []*client{ann, ben, cleo}
	for _, c := range all {
		_ = c.conn.Close(websocket.StatusNormalClosure, "")
		c.drain()
		for _, other := range all {
			for i, text := range c.heard {
				if c != other || i > 0 { // the first is its own "connected"
					assert.NotContains(t, text, other.token)
				}
			}
		}
	}
}

func TestOrigins(t *testing.T) {
	a := start(t, Config{Store: kvtest.Open(t), Origins: []string{"https://*.example.com"}})
	for origin, status := range map[string]int{
		"":                         http.StatusSwitchingProtocols,
		a.url:                      http.StatusSwitchingProtocols,
		"https://app.example.com":  http.StatusSwitchingProtocols,
		"http://app.example.com":   http.StatusForbidden,
		"https://evil.example.org": http.StatusForbidden,
		"null":                     http.StatusForbidden,
		"https://example.com.evil": http.StatusForbidden,
	} {
		header := http.Header{}
		if origin != "" {
			header.Set("Origin", origin)
		}
		conn, response, err := websocket.Dial(t.Context(), a.url, &websocket.DialOptions{HTTPHeader: header})
		require.NotNil(t, response, origin)
		assert.Equal(t, status, response.StatusCode, origin)
		if err == nil {
			require.NoError(t, conn.Close(websocket.StatusNormalClosure, ""))
		}
	}
	eventually(t, "the sockets have ended", func() bool { return a.Stats().Sockets == 0 })
}

func TestUnidentifiedParticipantIsRefused(t *testing.T) {
	a := start(t, Config{Store: kvtest.Open(t)})
	_, response, err := websocket.Dial(t.Context(), a.url, &websocket.DialOptions{
		HTTPHeader: http.Header{"Cookie": {"session=stopped"}}})
	require.Error(t, err)
	assert.Equal(t, http.StatusTooManyRequests, response.StatusCode)
	assert.Zero(t, a.Stats().Sockets)
}

func TestPlainRequestIsAskedToUpgrade(t *testing.T) {
	assertHTTPError(t, start(t, Config{Store: kvtest.Open(t)}), http.StatusUpgradeRequired, "upgrade_required")
}

// assertHTTPError sends a request without an upgrade and expects an error in the API's format.
func assertHTTPError(t *testing.T, a *instance, status int, code string) {
	t.Helper()
	response, err := http.Get(a.url)
	require.NoError(t, err)
	defer response.Body.Close()
	assert.Equal(t, status, response.StatusCode)
	var body struct {
		Success        *bool
		Error, Message string
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&body))
	assert.False(t, *body.Success)
	assert.Equal(t, code, body.Error)
	assert.NotEmpty(t, body.Message)
}

// The server slows down a client that floods it, but keeps the connection.
func TestAFloodIsSlowedDown(t *testing.T) {
	a := start(t, Config{Store: kvtest.Open(t)})
	ann := connect(t, a)
	began := time.Now()
	const extra = 50
	go func() {
		for range messagesAtOnce + extra {
			_ = ann.conn.Write(context.Background(), websocket.MessageText, []byte("ping"))
		}
	}()
	for range messagesAtOnce + extra {
		require.Equal(t, "pong", ann.next().Type)
	}
	assert.GreaterOrEqual(t, time.Since(began), extra*time.Second/messagesPerSecond-20*time.Millisecond)
}

// A message above the hard limit, or one that does not end, closes its sender's connection and no other.
func TestEndlessMessageClosesOnlyItsConnection(t *testing.T) {
	a := start(t, Config{Store: kvtest.Open(t), MessageLimit: 200 * time.Millisecond})
	bystander := connect(t, a)
	ended := func(c *client) {
		t.Helper()
		select {
		case _, open := <-c.inbox:
			assert.False(t, open, "it is cut off, not answered")
		case <-time.After(limit):
			assert.Fail(t, "it is still open")
		}
	}

	huge := connect(t, a)
	_ = huge.conn.Write(t.Context(), websocket.MessageText, make([]byte, hardLimit+1))
	ended(huge)

	slow := connect(t, a)
	writer, err := slow.conn.Writer(t.Context(), websocket.MessageText)
	require.NoError(t, err)
	_, err = writer.Write([]byte(`{"type":`)) // the rest never follows
	require.NoError(t, err)
	ended(slow)

	eventually(t, "only the bystander is left", func() bool { return a.Stats().Sockets == 1 })
	bystander.write("ping")
	assert.Equal(t, "pong", bystander.next().Type)
}

// The server drops a client that answers no ping, after two missed pongs.
func TestSilentClientsAreGone(t *testing.T) {
	a := start(t, Config{Store: kvtest.Open(t), Ping: 30 * time.Millisecond})
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"))
	require.NoError(t, err)
	reply, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, reply.StatusCode)
	require.NoError(t, reply.Body.Close())
	eventually(t, "it is gone", func() bool { return a.Stats().Sockets == 0 })
}

// A client that sends requests but reads no replies fills its own connection, not the server's memory. A client that
// does not read the states of its room receives the newest one when it reads again.
func TestOutbox(t *testing.T) {
	o := newOutbox()
	for range maxReplies {
		assert.False(t, o.full())
		o.add(outgoing{data: []byte("reply")})
	}
	assert.True(t, o.full())
	for revision := range int64(1000) {
		o.add(outgoing{state: &view{revision: revision}})
	}
	assert.LessOrEqual(t, len(o.waiting), maxReplies+maxStates)
	var last *view
	replies := 0
	for {
		message, ok := o.take()
		if !ok {
			break
		}
		if message.state == nil {
			replies++
			continue
		}
		if last != nil {
			assert.Greater(t, message.state.revision, last.revision, "in order")
		}
		last = message.state
	}
	assert.Equal(t, maxReplies, replies, "no reply is dropped")
	assert.Equal(t, int64(999), last.revision, "the newest is among them")
	assert.False(t, o.full())
}

func TestAConfigThatCannotWork(t *testing.T) {
	store := kvtest.Open(t)
	for what, config := range map[string]Config{
		"no store":            {},
		"a negative duration": {Store: store, Grace: -1},
		"an impatient sweep":  {Store: store, Heartbeat: time.Second, Dead: time.Second},
	} {
		_, err := New(config)
		assert.Error(t, err, what)
	}
}

// Close ends every socket and all its tasks, and participants may come back at another instance.
func TestCloseLeavesNothingRunning(t *testing.T) {
	store := kvtest.Open(t)
	a := start(t, Config{Store: store})
	ann, ben, silent := connect(t, a), connect(t, a), connect(t, a)
	assert.NotEmpty(t, ours())
	id := ann.create("Ann")
	ben.enter(id, "Ben")
	ben.info()
	silent.enter(id, "Silent")
	require.Eventually(t, func() bool { return len(keys(t, store, memberPrefix)) == 3 }, 30*time.Second, time.Millisecond)
	ben.close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	require.NoError(t, a.Close(ctx))
	for _, c := range []*client{ann, silent} {
		c.drain()
	}
	assert.Equal(t, Stats{}, a.Stats())
	assert.Empty(t, keys(t, store, socketPrefix))
	assert.Empty(t, keys(t, store, instancePrefix))
	assert.Len(t, keys(t, store, memberPrefix), 3, "the participants keep their places")
	assertHTTPError(t, a, http.StatusServiceUnavailable, "unavailable")
	assert.Empty(t, ours(), "a goroutine is left")
}
