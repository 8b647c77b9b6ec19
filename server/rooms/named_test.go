package rooms

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Those who know the name of a room meet there, whoever comes first.
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

	// The last one goes and somebody comes: it is their room then, and they are not told of the end of the former.
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

func TestTheEndOfAFormerRoomIsNotToldInTheNext(t *testing.T) {
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
