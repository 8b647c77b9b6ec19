package memory_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
)

func open(t *testing.T) (*memory.Store, *kv.Store) {
	s := memory.New()
	client := s.Client(nil)
	t.Cleanup(func() { assert.NoError(t, client.Close()); s.Close() })
	return s, client
}

// random draws a transaction over few keys. Its revisions count from first.
func random(r *rand.Rand, first, now int64) kv.Txn {
	key := func() string { return fmt.Sprintf("%c/%c", 'a'+r.IntN(2), 'a'+r.IntN(3)) }
	conds := []func() kv.Cond{
		func() kv.Cond { return kv.Absent(key()) },
		func() kv.Cond { return kv.Exists(key()) },
		func() kv.Cond { return kv.NoneUnder(key()[:2]) },
		func() kv.Cond { return kv.NoneBetween("a/b", "b/b") },
		func() kv.Cond { return kv.ChangedAt(key(), first+r.Int64N(now-first+1)) },
		func() kv.Cond { return kv.CreatedAt(key(), first+r.Int64N(now-first+1)) },
		func() kv.Cond { return kv.Holds(key(), []byte{byte('0' + r.IntN(3))}) },
	}
	reads := []kv.Op{kv.Read(key()), kv.ReadUnder("a/"), kv.ReadSomeUnder("b/", 2), kv.ReadBetween("a/b", "b/c", 3)}
	changed := key()
	changes := []kv.Op{kv.Put(changed, []byte{byte('0' + r.IntN(3))}), kv.Delete(changed), kv.DeleteUnder(changed[:2])}
	txn := kv.Txn{Then: []kv.Op{reads[r.IntN(len(reads))], changes[r.IntN(len(changes))]}, Else: []kv.Op{reads[r.IntN(len(reads))]}}
	for range r.IntN(3) {
		txn.If = append(txn.If, conds[r.IntN(len(conds))]())
	}
	return txn
}

// shifted returns the entries with revisions counted from first.
func shifted(entries []kv.Entry, first int64) (list []string) {
	for _, e := range entries {
		list = append(list, fmt.Sprintf("%s=%s created %d modified %d", e.Key, e.Value, e.Created-first, e.Modified-first))
	}
	return list
}

// The same transactions have the same results in memory and in etcd.
func TestAnswersAsEtcd(t *testing.T) {
	_, fake := open(t)
	etcd := kvtest.Open(t)
	var first [2]int64
	for i, s := range []*kv.Store{fake, etcd} {
		_, revision, err := s.Get(t.Context(), "none")
		require.NoError(t, err)
		first[i] = revision
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	now := first
	for n := range 400 {
		var outcome [2]string
		for i, s := range []*kv.Store{fake, etcd} {
			r := rand.New(rand.NewPCG(seed, uint64(n)))
			result, err := s.Commit(t.Context(), random(r, first[i], now[i]))
			require.NoError(t, err)
			text := fmt.Sprintf("%d: %v at %d", n, result.Held, result.Revision-first[i])
			for _, entries := range result.Reads {
				text += fmt.Sprintf(" %q", shifted(entries, first[i]))
			}
			past, err := s.RangeAt(t.Context(), "a/", first[i]+r.Int64N(now[i]-first[i]+1))
			require.NoError(t, err)
			outcome[i], now[i] = text+fmt.Sprintf(" past %q", shifted(past, first[i])), result.Revision
		}
		require.Equal(t, outcome[1], outcome[0])
	}
}

// As many transactions go in one, and as long ones, as in etcd.
func TestLimitsAsEtcd(t *testing.T) {
	_, fake := open(t)
	etcd := kvtest.Open(t)
	for _, size := range [][2]int{{kv.MaxOps - 1, 1}, {kv.MaxOps, 1}, {kv.MaxOps - 2, 2}, {kv.MaxOps - 1, 2}} {
		txns := make([]kv.Txn, size[0])
		for i := range txns {
			for range size[1] {
				txns[i].If = append(txns[i].If, kv.Absent("none"))
			}
			txns[i].Then = []kv.Op{kv.Put(fmt.Sprint(i), nil)}
		}
		_, inMemory := fake.CommitEach(t.Context(), txns)
		_, inEtcd := etcd.CommitEach(t.Context(), txns)
		assert.Equal(t, size[0]+size[1] > kv.MaxOps, errors.Is(inEtcd, kv.ErrTooLarge))
		assert.Equal(t, inEtcd, inMemory)
	}
}

// A transaction that binds a key to a lease that has ended is refused as a whole, alone and beside another one.
func TestEndedLeaseAsInEtcd(t *testing.T) {
	var answers [2]string
	_, fake := open(t)
	for i, s := range []*kv.Store{fake, kvtest.Open(t)} {
		ended, err := s.Lease(t.Context(), 5*time.Second)
		require.NoError(t, err)
		require.NoError(t, ended.Close(t.Context()))
		bound := kv.Txn{Then: []kv.Op{kv.Put("beside", nil), kv.PutBound("bound", nil, ended)}}
		_, alone := s.Commit(t.Context(), bound)
		_, together := s.CommitEach(t.Context(), []kv.Txn{bound, {Then: []kv.Op{kv.Put("other", nil)}}})
		other := kv.Txn{If: []kv.Cond{kv.Exists("bound")}, Then: bound.Then}
		result, err := s.Commit(t.Context(), other)
		require.NoError(t, err, "a list of operations that is not carried out needs no lease")
		keys, err := s.Keys(t.Context(), "")
		require.NoError(t, err)
		answers[i] = fmt.Sprint(alone, together, result.Held, keys)
	}
	assert.Equal(t, answers[1], answers[0])
	assert.Contains(t, answers[1], "lease")
}

// A watch delivers each change once and in order, from the requested revision on.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := open(t)
		_, after, err := s.Get(t.Context(), "none")
		require.NoError(t, err)
		for n := range 3 {
			_, err := s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("a/x", []byte{byte('0' + n)}), kv.Put("b", nil)}})
			require.NoError(t, err)
		}
		ctx, stop := context.WithCancel(t.Context())
		seen := make(chan string, 10)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = s.Watch(ctx, "a/", after+1, func(changes []kv.Change) error {
				for _, c := range changes {
					seen <- fmt.Sprintf("%s %s %v", c.Key, c.Value, c.Deleted)
				}
				return nil
			})
		}()
		synctest.Wait()
		_, err = s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.DeleteUnder("a/")}})
		require.NoError(t, err)
		synctest.Wait()
		stop()
		<-done
		close(seen)
		var all []string
		for text := range seen {
			all = append(all, text)
		}
		assert.Equal(t, []string{"a/x 1 false", "a/x 2 false", "a/x  true"}, all)
	})
}

// The keys of a lease stay while it is kept alive, and are deleted after its TTL otherwise.
func TestLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := open(t)
		kept, err := s.Lease(t.Context(), 5*time.Second)
		require.NoError(t, err)
		counted, err := s.Countdown(t.Context(), 5*time.Second)
		require.NoError(t, err)
		_, err = s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.PutBound("kept", nil, kept), kv.PutBound("counted", nil, counted)}})
		require.NoError(t, err)
		there := func() (keys []string) {
			keys, err := s.Keys(t.Context(), "")
			require.NoError(t, err)
			return keys
		}
		time.Sleep(4 * time.Second)
		assert.Equal(t, []string{"counted", "kept"}, there())
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"kept"}, there())
		require.NoError(t, kept.Close(t.Context()))
		assert.Empty(t, there())
	})
}

// A transaction that is late changes the store after its answer was given up.
func TestLateTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New()
		done := make(chan struct{})
		s := m.Client(func(_ context.Context, request string) (before, after error) {
			if request == "txn" {
				before = &memory.Late{After: time.Second, Done: func() { close(done) }}
			}
			return before, nil
		})
		t.Cleanup(func() { assert.NoError(t, s.Close()); m.Close() })
		_, err := s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("a", nil)}})
		require.ErrorIs(t, err, kv.ErrUnavailable)
		keys, err := s.Keys(t.Context(), "")
		require.NoError(t, err)
		assert.Empty(t, keys)
		<-done
		keys, err = s.Keys(t.Context(), "")
		require.NoError(t, err)
		assert.Equal(t, []string{"a"}, keys)
	})
}
