package locks

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// written returns the operations that give an owner a lease on a place, or a place in its queue.
func written(t *testing.T, holder, at string, waits bool) (ops []kv.Op) {
	t.Helper()
	now := time.Now()
	r, err := Request{Paths: []Path{{at}}, Holder: Holder{ID: holder}, TTL: time.Hour}.normal()
	require.NoError(t, err)
	own := newTicket(r, now)
	if !waits {
		return []kv.Op{kv.Put(own.beatKey(), encodeBeat(now.Add(time.Hour))), kv.Put(own.home(), own.encode())}
	}
	text, err := json.Marshal(own)
	require.NoError(t, err)
	return []kv.Op{kv.Put(own.stub, text), kv.Put(own.waitKeys()[0], text)}
}

// doomed returns the owners of the requests that close a deadlock, in a server's view.
func doomed(table *Table) (owners []string) {
	table.mirror.mu.Lock()
	defer table.mirror.mu.Unlock()
	for lease, own := range table.mirror.tickets {
		if table.mirror.graph.Ticket(lease).Doomed {
			owners = append(owners, own.Holder)
		}
	}
	return owners
}

// A server that saw a deadlock come and one that read it later refuse the same request, whichever of the changes came
// first and also if they share a revision. Otherwise each server could leave the refusal to the other one.
func TestServersAgreeOnWhoClosesADeadlock(t *testing.T) {
	waits, gets := written(t, "ann", "p", true), written(t, "bob", "p", false)
	for name, changes := range map[string][][]kv.Op{
		"the request first": {waits, gets}, "the lease first": {gets, waits},
		"together, the request first": {append(waits[:2:2], gets...)}, "together, the lease first": {append(gets[:2:2], waits...)},
	} {
		t.Run(name, func(t *testing.T) {
			table := opened(t)
			var last kv.Result
			for _, ops := range append([][]kv.Op{written(t, "ann", "q", false), written(t, "bob", "q", true)}, changes...) {
				var err error
				last, err = table.store.Commit(t.Context(), kv.Txn{Then: ops})
				require.NoError(t, err)
			}
			require.NoError(t, table.catchUpTo(t.Context(), last.Revision))
			later := openOver(t, table.store)
			require.Len(t, doomed(table), 1)
			assert.Equal(t, doomed(table), doomed(later))
		})
	}
}
