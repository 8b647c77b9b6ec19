package rooms

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// These tests follow the flows of the contract, with two servers on one store.

func TestFlowCreate(t *testing.T) {
	a, _, store := pair(t, Config{Instance: ""})
	ann := connect(t, a)
	id := ann.create("Ann")
	info := ann.info()
	assert.Equal(t, []string{"Ann="}, names(info.roomInfo))
	assert.True(t, info.Room.Participants[0].IsMe)
	assert.False(t, info.Room.IsOpen)
	assert.Equal(t, id, info.Room.ID)
	ann.quiet("one state, one message")

	stored := must(decodeRoom([]byte(keys(t, store, roomPrefix)[id])))(t)
	assert.Equal(t, ann.token, stored.Participants[0].Token)
	assert.Equal(t, map[string]string{ann.token: id}, keys(t, store, memberPrefix))
	assert.Equal(t, map[string]string{ann.token: a.config.Instance}, keys(t, store, socketPrefix))
	updated := must(decodeTime([]byte(keys(t, store, updatePrefix)[id])))(t)
	assert.WithinDuration(t, time.Now(), updated, limit)
}

func TestFlowEnter(t *testing.T) {
	a, b, store := pair(t, Config{})
	ann, ben := connect(t, a), connect(t, b)
	id := ann.create("Ann")
	ann.info()

	ben.send("isExistTheRoom", map[string]any{"roomId": id})
	assert.True(t, *ben.next().IsExistTheRoom)
	ben.enter(id, "Ben")
	assert.Equal(t, []string{"Ann=", "Ben="}, names(ann.info().roomInfo))
	info := ben.info()
	assert.Equal(t, []string{"Ann=", "Ben="}, names(info.roomInfo))
	assert.False(t, info.Room.Participants[0].IsMe)
	assert.True(t, info.Room.Participants[1].IsMe)
	assert.NotEqual(t, info.Room.Participants[0].Number, info.Room.Participants[1].Number)
	ann.quiet("each state comes once")
	ben.quiet("each state comes once")
	assert.Equal(t, map[string]string{ann.token: id, ben.token: id}, keys(t, store, memberPrefix))
}

func TestFlowAnswer(t *testing.T) {
	a, b, _ := pair(t, Config{})
	ann, ben := connect(t, a), connect(t, b)
	ben.enter(ann.create("Ann"), "Ben")
	ann.info()
	ann.info()
	ben.info()

	ann.answer("tea")
	mine, theirs := ann.info(), ben.info()
	assert.Equal(t, []string{"Ann=tea", "Ben="}, names(mine.roomInfo), "one's own answer is shown")
	assert.Equal(t, []string{"Ann=", "Ben="}, names(theirs.roomInfo), "the answer of another participant is still hidden")
	assert.True(t, theirs.Room.Participants[0].answered())
	assert.NotContains(t, theirs.text, "tea")
	assert.Equal(t, mine.Revision, theirs.Revision)

	ben.answer("coffee")
	for _, c := range []*client{ann, ben} {
		info := c.info()
		assert.True(t, info.Room.IsOpen)
		assert.Equal(t, []string{"Ann=tea", "Ben=coffee"}, names(info.roomInfo))
	}

	ann.send("clearAnswer", map[string]any{"roomId": ann.room})
	info := ben.info()
	assert.False(t, info.Room.IsOpen)
	assert.Equal(t, []string{"Ann=", "Ben=coffee"}, names(info.roomInfo))
	assert.Equal(t, []string{"Ann=", "Ben="}, names(ann.info().roomInfo), "hidden again")

	ben.send("clearAnswer", map[string]any{"roomId": ann.room, "everyone": true})
	for _, c := range []*client{ann, ben} {
		for _, p := range c.info().Room.Participants {
			assert.False(t, p.answered())
		}
		c.quiet("each state comes once")
	}
}

func TestFlowInstancesInStep(t *testing.T) {
	a, b, _ := pair(t, Config{})
	one, two, three := connect(t, a), connect(t, b), connect(t, b)
	two.enter(one.create("one"), "two")
	one.info()
	assert.Equal(t, one.info().Revision, two.info().Revision)
	three.create("three")
	three.info()
	assert.Equal(t, 1, a.Stats().Rooms)
	assert.Equal(t, 2, b.Stats().Rooms)

	for _, said := range []string{"x", "y", "z"} {
		one.answer(said)
		assert.Equal(t, one.info().Revision, two.info().Revision)
	}
	three.quiet("another room gets no message")

	three.enter(one.room, "three")
	assert.Equal(t, []string{"one=z", "two=", "three="}, names(one.info().roomInfo))
	assert.Equal(t, []string{"one=", "two=", "three="}, names(three.info().roomInfo))
	eventually(t, "the watch of the room three left is stopped", func() bool { return b.Stats().Rooms == 1 })
}

func TestFlowLeave(t *testing.T) {
	a, b, store := pair(t, Config{Grace: 100 * time.Millisecond})
	ann, ben, cleo := connect(t, a), connect(t, b), connect(t, b)
	id := ann.create("Ann")
	ben.enter(id, "Ben")
	ben.info()
	cleo.enter(id, "Cleo")
	cleo.info()
	ann.answer("tea")
	ben.answer("coffee")
	ann.until("both", func(r roomInfo) bool {
		return len(r.Room.Participants) == 3 && r.Room.Participants[0].answered() && r.Room.Participants[1].answered()
	})

	closed := time.Now()
	cleo.close()
	info := ann.info()
	assert.GreaterOrEqual(t, time.Since(closed), 100*time.Millisecond, "the time of grace")
	assert.Equal(t, []string{"Ann=tea", "Ben=coffee"}, names(info.roomInfo))
	assert.True(t, info.Room.IsOpen, "all participants that are left have answered")
	assert.NotContains(t, keys(t, store, memberPrefix), cleo.token)
	assert.NotContains(t, keys(t, store, socketPrefix), cleo.token)

	ben.close()
	assert.Equal(t, []string{"Ann=tea"}, names(ann.info().roomInfo))
	eventually(t, "no participant is left at b", func() bool { return b.Stats().Rooms == 0 })
	ann.close()
	eventually(t, "an empty room is deleted", func() bool { return len(keys(t, store, roomPrefix)) == 0 })
	assert.Empty(t, keys(t, store, updatePrefix))
	assert.Empty(t, keys(t, store, memberPrefix))
	assert.Empty(t, keys(t, store, socketPrefix))
	eventually(t, "no watch is left", func() bool { return a.Stats() == Stats{Conflicts: a.Stats().Conflicts} })
}

func TestFlowCleanup(t *testing.T) {
	clock := &fakeClock{at: time.Now()}
	a, b, store := pair(t, Config{Now: clock.now, IdleScan: 20 * time.Millisecond})
	ann, ben, cleo := connect(t, a), connect(t, b), connect(t, b)
	id := ann.create("Ann")
	ben.enter(id, "Ben")
	ben.info()
	ann.info()
	ann.info()
	clock.advance(29 * time.Minute)
	other := cleo.create("Cleo")
	cleo.info()
	ann.quiet("not idle for long enough")

	clock.advance(61 * time.Second)
	ann.refused("room_closed")
	ben.refused("room_closed")
	cleo.quiet("another room lives on")
	assert.Equal(t, []string{other}, sortedKeys(keys(t, store, roomPrefix)))
	assert.Equal(t, []string{other}, sortedKeys(keys(t, store, updatePrefix)))
	assert.Equal(t, map[string]string{cleo.token: other}, keys(t, store, memberPrefix))
	eventually(t, "the watch is stopped", func() bool { return a.Stats().Rooms == 0 && b.Stats().Rooms == 1 })

	ann.answer("too late")
	ann.refused("room_not_found")
	ann.enter(other, "Ann")
	require.Equal(t, []string{"Cleo=", "Ann="}, names(ann.info().roomInfo), "the socket of a closed room can enter another room")
}
