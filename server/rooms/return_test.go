package rooms

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// A reload closes one socket and opens another. The answer and the number stay, and the other participants notice
// nothing.
func TestReloadIsTheSameParticipant(t *testing.T) {
	for what, way := range map[string]struct {
		session string
		proof   func(former string) map[string]any
	}{
		"by the session": {"browser-1", func(string) map[string]any { return nil }},
		"by the token":   {"", func(former string) map[string]any { return map[string]any{"previousToken": former} }},
	} {
		for _, elsewhere := range []bool{false, true} {
			t.Run(what, func(t *testing.T) {
				t.Parallel()
				const grace = 3 * time.Second // Ann comes back in it, however busy the machine is
				a, b, store := pair(t, Config{Grace: grace})
				ann, ben := connect(t, a, session(way.session)), connect(t, b, session("browser-2"))
				id := ann.create("Ann")
				ben.enter(id, "Ben")
				ann.answer("tea")
				before := ann.until("answered", func(r roomInfo) bool {
					return len(r.Room.Participants) == 2 && r.Room.Participants[0].answered()
				})
				ben.until("answered", func(r roomInfo) bool { return r.Room.Participants[0].answered() })

				ann.close()
				eventually(t, "the socket has ended", func() bool { return keys(t, store, socketPrefix)[ann.token] == "" })
				to := a
				if elsewhere {
					to = b
				}
				again := connect(t, to, session(way.session))
				fields := map[string]any{"roomId": id, "userName": "Ann"}
				for k, v := range way.proof(ann.token) {
					fields[k] = v
				}
				again.send("enterTheRoom", fields)
				after := again.info()
				assert.Equal(t, before.Room, after.Room)
				assert.Greater(t, after.Revision, before.Revision)
				assert.Equal(t, map[string]string{again.token: id, ben.token: id}, keys(t, store, memberPrefix))

				time.Sleep(grace + 100*time.Millisecond) // it no longer removes the participant
				ben.quiet("a reload is nobody else's business")
				again.quiet("each state comes once")
				again.room = id
				again.answer("milk")
				assert.True(t, ben.info().Room.Participants[0].answered())
			})
		}
	}
}

// While a participant is away, others answer, enter and leave. The first state after its return has all of that, at the same server and at another
// one, which may see the changes later.
func TestReturningParticipantGetsTheLatest(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		for _, away := range []bool{true, false} { // or the server has not noticed yet that the socket is gone
			t.Run(fmt.Sprint(elsewhere, away), func(t *testing.T) {
				t.Parallel()
				a, b, store := pair(t, Config{Grace: limit})
				ann, ben, cleo := connect(t, a), connect(t, b), connect(t, b)
				id := ann.create("Ann")
				ben.enter(id, "Ben")
				ben.until("Ben is second", func(r roomInfo) bool { return len(r.Room.Participants) == 2 })
				cleo.enter(id, "Cleo")
				ann.until("all are there", func(r roomInfo) bool { return len(r.Room.Participants) == 3 })
				if away {
					ann.close()
					eventually(t, "the socket has ended", func() bool { return keys(t, store, socketPrefix)[ann.token] == "" })
				}
				last := 0
				for i := range 20 { // more than the outbox keeps
					ben.answer(fmt.Sprint(i))
					last = i
				}
				dora := connect(t, a)
				dora.enter(id, "Dora")
				cleo.send("createRoom", map[string]any{"userName": "Cleo"})
				ben.until("Cleo has gone", func(r roomInfo) bool {
					return slices.Equal(names(r), []string{"Ann=", fmt.Sprint("Ben=", last), "Dora="})
				})
				to := a
				if elsewhere {
					to = b
				}
				again := connect(t, to)
				again.send("enterTheRoom", map[string]any{"roomId": id, "userName": "Ann", "previousToken": ann.token})
				first := again.info()
				assert.Len(t, first.Room.Participants, 3)
				assert.True(t, first.Room.Participants[1].answered())
				again.room = id
				again.answer("tea")
				dora.answer("milk")
				assert.Equal(t, []string{"Ann=tea", fmt.Sprint("Ben=", last), "Dora=milk"},
					names(again.until("open", func(r roomInfo) bool { return r.Room.IsOpen }).roomInfo))
			})
		}
	}
}

// Without a proof the server adds a new participant, even if the name is the same.
func TestAnotherSessionDoesNotTakeAnAbsentParticipantsPlace(t *testing.T) {
	a := start(t, Config{Store: kvtest.Open(t), Grace: limit})
	ann, ben := connect(t, a, session("browser-1")), connect(t, a, session("browser-2"))
	id := ann.create("Ann")
	ann.answer("secret")
	ann.until("answered", func(r roomInfo) bool { return r.Room.Participants[0].answered() })
	ben.enter(id, "Ben")
	ben.info()
	ann.close()
	eventually(t, "the socket has ended", func() bool { return a.Stats().Sockets == 1 })

	for what, c := range map[string]*client{
		"another session": connect(t, a, session("browser-3")),
		"no session":      connect(t, a),
	} {
		c.enter(id, "Ann")
		info := c.info()
		for _, p := range info.Room.Participants[:2] {
			assert.False(t, p.IsMe, what)
		}
		assert.NotContains(t, info.text, "secret", what)
	}
	other := connect(t, a, session("browser-1"))
	other.enter(id, "Anton")
	assert.NotContains(t, other.info().text, "secret", "another tab of the same browser has another name")
}

// While a participant is connected, the session alone does not take its place: two tabs may use one name.
func TestTwoTabsOfOneBrowser(t *testing.T) {
	a := start(t, Config{Store: kvtest.Open(t)})
	one, two := connect(t, a, session("browser")), connect(t, a, session("browser"))
	two.enter(one.create("Ann"), "Ann")
	assert.Len(t, two.info().Room.Participants, 2)
	one.info()
	assert.Len(t, one.info().Room.Participants, 2)
}

// A former token is exact. It works while the former socket still counts as alive; that socket then leaves the room.
func TestATokenTakesOverALivingSocket(t *testing.T) {
	a, b, _ := pair(t, Config{})
	for _, to := range []*instance{a, b} {
		former := connect(t, a)
		id := former.create("Ann")
		former.answer("tea")
		former.until("answered", func(r roomInfo) bool { return r.Room.Participants[0].answered() })

		next := connect(t, to)
		next.send("enterTheRoom", map[string]any{"roomId": id, "userName": "Ann", "previousToken": former.token})
		assert.Equal(t, []string{"Ann=tea"}, names(next.info().roomInfo))
		former.refused("removed")
		former.send("answer", map[string]any{"roomId": id, "answer": "x"})
		former.refused("not_in_room")
		_ = former.conn.Close(websocket.StatusNormalClosure, "")
		next.quiet("the former socket's end changes nothing")
	}
}

// A participant that enters or creates another room leaves its former room at once, without a message.
func TestParticipantThatEntersAnotherRoomLeavesTheFirst(t *testing.T) {
	a, b, store := pair(t, Config{})
	ann, ben := connect(t, a), connect(t, b)
	first := ann.create("Ann")
	ben.enter(first, "Ben")
	ben.info()
	ann.info()
	ann.info()
	second := ben.create("Ben")
	assert.Equal(t, []string{"Ben="}, names(ben.info().roomInfo))
	assert.Equal(t, []string{"Ann="}, names(ann.info().roomInfo))
	ann.enter(second, "Ann")
	assert.Equal(t, []string{"Ben=", "Ann="}, names(ann.info().roomInfo))
	assert.Equal(t, []string{second}, sortedKeys(keys(t, store, roomPrefix)), "the first room was empty")

	ann.enter("gone", "Ann")
	ann.refused("room_not_found")
	ann.enter(second, "Anna")
	assert.Equal(t, []string{"Ben=", "Anna="}, names(ann.info().roomInfo), "still there, under the new name")
	ann.enter(second, "Anna")
	assert.Equal(t, []string{"Ben=", "Anna="}, names(ann.info().roomInfo), "a participant that asks again gets another answer")
}
