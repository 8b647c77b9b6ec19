package rooms

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// While a large idle room is closed, one of its participants makes it again. It is a participant of the new room, and
// can leave it.
func TestARoomThatIsMadeAgainWhileItIsClosed(t *testing.T) {
	store := &faulty{Store: kvtest.Open(t)}
	a := start(t, Config{Store: store})
	r := large(t, store)
	last := r.Participants[len(r.Participants)-1]
	store.after(func(txn kv.Txn) {
		if len(txn.Then) < closeBatch {
			return // a sign of life
		}
		store.after(nil)
		must(a.table.enter(t.Context(), r.ID, participant{Token: last.Token, Name: "Ann"}, "", true))(t)
	})
	closeIdle(t, a)
	assert.Equal(t, r.ID, keys(t, store, memberPrefix)[last.Token])
}
