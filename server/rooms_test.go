package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server"
)

// visitor is a socket of somebody in a room.
type visitor struct {
	t     *testing.T
	conn  *websocket.Conn
	token any
}

// visit opens a socket as a browser with these cookies does.
func visit(t *testing.T, i *instance, jar http.CookieJar) *visitor {
	t.Helper()
	return visitAs(t, i, jar, nil)
}

func visitAs(t *testing.T, i *instance, jar http.CookieJar, header http.Header) *visitor {
	t.Helper()
	conn, response, err := websocket.Dial(t.Context(), i.URL+"/ws", &websocket.DialOptions{
		HTTPClient: &http.Client{Jar: jar}, HTTPHeader: header})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.CloseNow() })
	at, err := url.Parse(i.URL)
	require.NoError(t, err)
	jar.SetCookies(at, response.Cookies())
	v := &visitor{t: t, conn: conn}
	v.token = v.next("connected")["userToken"]
	return v
}

func newJar(t *testing.T) http.CookieJar {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	return jar
}

// next waits for the next message, which is of this type.
func (v *visitor) next(kind string) map[string]any {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.t.Context(), 10*time.Second)
	defer cancel()
	_, text, err := v.conn.Read(ctx)
	require.NoError(v.t, err)
	var message map[string]any
	require.NoError(v.t, json.Unmarshal(text, &message))
	require.Equal(v.t, kind, message["type"], string(text))
	return message
}

func (v *visitor) send(message map[string]any) {
	v.t.Helper()
	message["userToken"] = v.token
	text, err := json.Marshal(message)
	require.NoError(v.t, err)
	require.NoError(v.t, v.conn.Write(v.t.Context(), websocket.MessageText, text))
}

func present(info map[string]any) []any {
	return info["room"].(map[string]any)["participants"].([]any)
}

// The rooms of the whole service: two servers on one store, and a browser that is known by its cookie.
func TestRoomsOverTheWholeService(t *testing.T) {
	grace := func(d time.Duration) func(*server.Config) { return func(c *server.Config) { c.RoomGrace = d } }
	a := start(t, grace(10*time.Minute)) // Ann comes back in it, however slow this machine is
	b := a.another(t, grace(10*time.Minute))
	browser, other := newJar(t), newJar(t)

	ann, ben := visit(t, a, browser), visit(t, b, other)
	ann.send(map[string]any{"type": "createRoom", "userName": "Ann"})
	id := ann.next("roomCreated")["roomId"]
	ann.next("roomInfo")
	ann.send(map[string]any{"type": "answer", "roomId": id, "answer": "tea"})
	ann.next("roomInfo")
	ben.send(map[string]any{"type": "enterTheRoom", "userName": "Ben", "roomId": id})
	assert.Len(t, present(ben.next("roomInfo")), 2)

	require.NoError(t, ann.conn.Close(websocket.StatusGoingAway, ""))
	require.Eventually(t, func() bool {
		keys, err := a.Store().Keys(t.Context(), "socket_instances/")
		return err == nil && len(keys) == 1
	}, 30*time.Second, time.Millisecond, "only Ben's socket is left: nobody takes the place of a connected participant")
	again := visit(t, a, browser)
	again.send(map[string]any{"type": "enterTheRoom", "userName": "Ann", "roomId": id})
	first := present(again.next("roomInfo"))[0].(map[string]any)
	assert.Equal(t, "tea", first["answer"], "the cookie and the name prove who comes back")
	assert.Equal(t, true, first["isMe"])

	ben.send(map[string]any{"type": "answer", "roomId": id, "answer": "milk"})
	for _, v := range []*visitor{again, ben} {
		info := v.next("roomInfo")
		assert.Equal(t, true, info["room"].(map[string]any)["isOpen"])
		assert.Len(t, present(info), 2)
	}

	cleo := visit(t, a.another(t, grace(300*time.Millisecond)), newJar(t))
	cleo.send(map[string]any{"type": "enterTheRoom", "userName": "Cleo", "roomId": id})
	assert.Len(t, present(ben.next("roomInfo")), 3)
	require.NoError(t, cleo.conn.Close(websocket.StatusGoingAway, ""))
	assert.Len(t, present(ben.next("roomInfo")), 2, "nobody comes back this time")
}

// A session has many sockets, and a user or an address many sessions. Their messages count as their requests do.
func TestMessagesOfAllSocketsShareALimit(t *testing.T) {
	t.Parallel()
	for name, bound := range map[string]func(*server.Config){
		"session": func(c *server.Config) { c.Rate, c.Burst = 0.001, 20 },
		"address": func(c *server.Config) { c.AddressRate, c.AddressBurst = 0.001, 20 },
		"user": func(c *server.Config) {
			c.UserHeader, c.TrustedProxies, c.UserRate, c.UserBurst = "X-User", []string{"127.0.0.1"}, 0.001, 20
		},
	} {
		s := start(t, bound)
		jar, header := newJar(t), http.Header{}
		sockets := make([]*visitor, 5)
		for i := range sockets {
			if name == "user" {
				jar = newJar(t)
				header.Set("X-User", "Ann")
			}
			sockets[i] = visitAs(t, s, jar, header)
		}
		replies := make(chan []byte, 100)
		for _, v := range sockets {
			go func() {
				for {
					_, text, err := v.conn.Read(t.Context())
					if err != nil {
						return
					}
					replies <- text
				}
			}()
			for range 10 {
				require.NoError(t, v.conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"isExistTheRoom","roomId":"r"}`)))
			}
		}
		passed := 20 - len(sockets) // each socket is a request
		if name == "session" {
			passed++ // the first one had no session
		}
		for range passed {
			<-replies
		}
		time.Sleep(500 * time.Millisecond) // each socket asks twice meanwhile whether it may send
		assert.Empty(t, replies, name)
	}
}
