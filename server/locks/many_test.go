package locks

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// A server starts with many locks in the store, reads them in pages, and continues. LOCKS= sets the number of locks.
func TestStartWithManyLocks(t *testing.T) {
	many := 3000
	if n, err := strconv.Atoi(os.Getenv("LOCKS")); err == nil {
		many = n
	}
	dir := kvtest.Dir(t)
	begun := time.Now()
	kvtest.Fill(t, dir, func(s *kv.Store) { fill(t, s, many) })
	t.Logf("%d locks: filled in %v", many, time.Since(begun))

	begun = time.Now()
	store := kvtest.OpenIn(t, dir)
	t.Logf("the store opens in %v", time.Since(begun))
	before := heapBytes()
	begun = time.Now()
	table, err := Open(t.Context(), store, Config{})
	require.NoError(t, err)
	t.Logf("the table opens in %v, %d bytes each; the process has %d MB", time.Since(begun), (heapBytes()-before)/int64(many), resident(t)>>20)
	t.Cleanup(table.Close)
	assert.Len(t, table.mirror.held, many)
	assert.Len(t, table.mirror.order.list, many)
	for i := range table.mirror.order.list[1:] {
		assert.Less(t, table.mirror.order.list[i].token, table.mirror.order.list[i+1].token+1)
	}
	_, err = table.Acquire(t.Context(), Request{Paths: []Path{Document("doc-7")}, Holder: Holder{ID: "x", Name: "X"}, TTL: time.Minute})
	var denied *DeniedError
	require.ErrorAs(t, err, &denied)
	l, err := table.Acquire(t.Context(), Request{Paths: []Path{Document("new")}, Holder: Holder{ID: "x", Name: "X"}, TTL: time.Minute})
	require.NoError(t, err)
	_, err = table.Renew(t.Context(), l.ID, "x")
	require.NoError(t, err)
}

// fill puts locks into a store, about 500 in each transaction: one by one, a million would take an hour.
func fill(t *testing.T, store *kv.Store, many int) {
	const locksInPart, parts = 25, 20
	now := time.Now()
	var txns []kv.Txn
	var ops []kv.Op
	for i := range many {
		c := newClaim(Request{Paths: []Path{Document(fmt.Sprint("doc-", i))}, Mode: Exclusive, Slots: 1, TTL: time.Hour, Holder: Holder{ID: fmt.Sprint("h", i%1000), Name: "Ann"}}, now)
		ops = append(ops, kv.Put(c.beatKey(), encodeBeat(now.Add(time.Hour))), kv.Put(c.keys()[0], c.encode()))
		if len(ops) == 2*locksInPart || i == many-1 {
			txns, ops = append(txns, kv.Txn{Then: ops}), nil
		}
		if len(txns) == parts || i == many-1 {
			_, err := store.CommitEach(t.Context(), txns)
			require.NoError(t, err)
			txns = nil
		}
	}
}

// resident returns the memory of this process in bytes.
func resident(t *testing.T) int64 {
	debug.FreeOSMemory() // or what the filling took would count
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Log("the memory of the process is not known:", err)
		return 0
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	require.NoError(t, err)
	return pages * int64(os.Getpagesize())
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// All leases of a store are due together. Due returns them in parts, until none is left.
func TestManyLeasesAreDueTogether(t *testing.T) {
	m := newMirror()
	table := &Table{mirror: m}
	now := time.Now()
	for i := range 2*dueAtOnce + 10 {
		c := claim{Lease: fmt.Sprint(i), Holder: "h", Mode: Exclusive, Slots: 1, TTL: 1000, Paths: []Path{{fmt.Sprint(i)}}}
		m.set(kv.Entry{Key: c.beatKey(), Value: encodeBeat(now), Modified: int64(i + 1)}, now.Add(-time.Minute), true)
		m.set(kv.Entry{Key: c.keys()[0], Value: c.encode(), Created: int64(i + 1), Modified: int64(i + 1)}, now.Add(-time.Minute), true)
	}
	for _, want := range []int{dueAtOnce, dueAtOnce, 10, 0} {
		due, next := table.Due(now)
		require.Len(t, due, want)
		assert.Equal(t, want == dueAtOnce, next.Equal(now), "more are due now")
		for _, d := range due {
			m.unset(d.keys()[0])
		}
	}
}
