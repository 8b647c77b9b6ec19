package rooms

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Participants that use the same room name meet there, in any order of arrival.
func TestMeetingInARoomByName(t *testing.T) {
	a, b, store := pair(t, Config{})
	named := func(c *client, name string) {
		c.room = "document"
		c.send("enterTheRoom", map[string]any{"roomId": c.room, "userName": name, "create": true})
	}
	ann, ben := connect(t, a), connect(t, b)
	named(ann, "Ann")
	named(ben, "Ben")
	two := func(r roomInfo) bool { return len(r.Room.Participants) == 2 }
	ann.until("both are there", two)
	ben.until("both are there", two)
	assert.Equal(t, []string{"document"}, sortedKeys(keys(t, store, roomPrefix)))
	ben.create("Ben")
	ben.info()
	ann.until("Ann is alone", func(r roomInfo) bool { return !two(r) })

	// The last participant leaves and another one enters. The room is then theirs, and they do not receive the end of
	// the former room.
	cleo := connect(t, a)
	for range 4 {
		ann.create("Ann")
		named(cleo, "Cleo")
		assert.Contains(t, names(cleo.info().roomInfo), "Cleo=")
		ann.info()
		cleo.create("Cleo")
		named(ann, "Ann")
		assert.Contains(t, names(ann.info().roomInfo), "Ann=")
		cleo.info()
	}
}

func TestEndOfFormerRoomIsNotSentToTheNext(t *testing.T) {
	f := &feed{id: "r", members: map[string]*member{}, vacant: func() {}}
	s := &socket{token: "ann", out: newOutbox()}
	f.join(s, 5)
	f.publish(nil, 4)
	_, told := s.out.take()
	assert.False(t, told)
	f.publish(nil, 6)
	_, told = s.out.take()
	assert.True(t, told)
}
