package rooms

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// A member receives no revision twice, no state from before its entry, and no state that looks like the last one. But
// a member that has just asked to enter always receives an answer.
func TestFeedEvents(t *testing.T) {
	r := must(room{ID: "r"}.enter("ann", "Ann", ""))(t)
	f := &feed{id: "r", members: map[string]*member{}, vacant: func() {}}
	s := &socket{token: "ann", out: newOutbox()}
	tell := func(r room, revision int64) int {
		f.publish(newView(r, revision), revision)
		count := 0
		for {
			if _, ok := s.out.take(); !ok {
				return count
			}
			count++
		}
	}
	f.join(s, 5)
	assert.Equal(t, 0, tell(r, 4), "before it came")
	assert.Equal(t, 1, tell(r, 5))
	assert.Equal(t, 0, tell(r, 5), "the same again, as after a watch began again")
	assert.Equal(t, 0, tell(r, 6), "a change that nobody can see sends nothing")
	said := must(r.answer("ann", "x"))(t)
	assert.Equal(t, 0, tell(said, 6), "no revision comes twice")
	assert.Equal(t, 1, tell(must(said.answer("ann", "y"))(t), 7))
	assert.Equal(t, 1, tell(r, 8))
	f.move(s, true)
	assert.Equal(t, 1, tell(r, 9), "it asked")
	f.join(s, 9)
	assert.Equal(t, 0, tell(r, 9), "and has been answered")
	assert.Equal(t, 0, tell(r, 10))
}

// The watch stops at once with the last local socket, not only when its participant leaves after the grace period.
func TestTheLastSocketStopsTheWatch(t *testing.T) {
	a := start(t, Config{Store: kvtest.Open(t), Grace: limit})
	ann, ben := connect(t, a), connect(t, a)
	ben.enter(ann.create("Ann"), "Ben")
	ben.info()
	ann.close()
	eventually(t, "one socket has ended", func() bool { return a.Stats().Sockets == 1 })
	assert.Equal(t, 1, a.Stats().Rooms)
	ben.close()
	eventually(t, "the watch has stopped", func() bool { return a.Stats().Rooms == 0 })
}
