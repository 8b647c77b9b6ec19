package opfs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/lock"
)

// Others read one of the records of a resource. Those of earlier holders do not count. Of several holders that share the lock, the record that
// expires last counts: until then, one of them may live.
func TestRecordOfResource(t *testing.T) {
	now := time.Now()
	write := func(id string, token int64, mode lock.Mode, left time.Duration) *entry {
		r := lock.Record{Resource: "a", LeaseID: id, Token: token, Mode: mode, ExpiresAt: now.Add(left)}
		return &entry{id: id, client: id, state: recorded, lease: &lease{Record: r}}
	}
	for _, c := range []struct {
		name string
		all  []*entry
	}{
		{"", nil},
		{"last", []*entry{write("stolen", 1, lock.Exclusive, time.Hour), write("last", 2, lock.Exclusive, time.Second)}},
		{"long", []*entry{write("long", 1, lock.Shared, time.Hour), write("short", 2, lock.Shared, time.Second)}},
		{"long", []*entry{write("short", 1, lock.Shared, -time.Second), write("stolen", 2, lock.Exclusive, 2*time.Hour), write("long", 3, lock.Shared, time.Hour), write("other", 4, lock.Shared, 0)}},
		{"last", []*entry{write("reader", 1, lock.Shared, time.Hour), write("last", 2, lock.Exclusive, time.Second)}},
		{"last", []*entry{write("old", 1, "", time.Hour), write("last", 2, "", time.Second)}},
	} {
		found := ""
		if l := (&table{queue: c.all}).record("a"); l != nil {
			found = l.LeaseID
		}
		assert.Equal(t, c.name, found)
	}
	assert.Nil(t, (&table{queue: []*entry{write("a", 1, lock.Shared, 0)}}).record("b"))
}
