package rooms

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// While a large idle room is closed, one of its participants makes it again. It is a participant of the new room, and
// can leave it.
func TestARoomThatIsMadeAgainWhileItIsClosed(t *testing.T) {
	store := &faulty{Store: kvtest.Open(t)}
	a := start(t, Config{Store: store})
	r := room{ID: "large"}
	for range 300 {
		token := newToken()
		r = must(r.enter(token, "Ann", ""))(t)
		must(store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(memberPrefix+token, []byte(r.ID))}}))(t)
	}
	updated := encodeTime(time.Now().Add(-time.Hour))
	must(store.Commit(t.Context(), kv.Txn{Then: []kv.Op{
		kv.Put(roomPrefix+r.ID, must(r.encode())(t)), kv.Put(updatePrefix+r.ID, updated)}}))(t)
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
