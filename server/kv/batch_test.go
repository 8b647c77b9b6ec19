package kv_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
)

// slowLink is a connection to a store in memory on which each request takes 5 ms of virtual time.
type slowLink struct {
	*kv.Store
	mu       sync.Mutex
	requests int
	after    error         // of the requests from now on
	refuses  error         // of the next request
	hangs    chan struct{} // the next request waits for it
}

// overSlowLink runs a test with a store that is behind a slow link.
func overSlowLink(t *testing.T, test func(t *testing.T, s *slowLink)) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New()
		s := &slowLink{}
		s.Store = m.Client(s.carry)
		t.Cleanup(func() { assert.NoError(t, s.Close()); m.Close() })
		test(t, s)
	})
}

func (s *slowLink) carry(ctx context.Context, request string) (before, after error) {
	if request != "txn" {
		return nil, nil
	}
	s.mu.Lock()
	s.requests++
	before, after, hangs := s.refuses, s.after, s.hangs
	s.refuses, s.hangs = nil, nil
	s.mu.Unlock()
	if hangs != nil {
		<-hangs
	}
	select {
	case <-ctx.Done():
	case <-time.After(5 * time.Millisecond):
	}
	return before, after
}

func (s *slowLink) sent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// outcome is the outcome of a commit.
type outcome struct {
	kv.Result
	err error
}

// together commits transactions while another one is in flight, in their order. The function that it returns waits for
// the outcomes.
func (s *slowLink) together(t *testing.T, txns ...kv.Txn) (outcomes func() []outcome) {
	t.Helper()
	var committing sync.WaitGroup
	committing.Go(func() {
		_, err := s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("first", nil)}})
		assert.NoError(t, err)
	})
	synctest.Wait()
	list := make([]outcome, len(txns))
	for i, txn := range txns {
		committing.Go(func() { list[i].Result, list[i].err = s.Commit(t.Context(), txn) })
		synctest.Wait()
	}
	return func() []outcome { committing.Wait(); return list }
}

func putting(key string) kv.Txn { return kv.Txn{Then: []kv.Op{kv.Put(key, nil)}} }

// Transactions that wait while another one is in flight become one request. Each one has its own conditions and its
// own results.
func TestWaitingTransactionsShareARequest(t *testing.T) {
	overSlowLink(t, func(t *testing.T, s *slowLink) {
		there := put(t, s.Store, "there", "value")
		before := s.sent()
		outcomes := s.together(t,
			kv.Txn{If: []kv.Cond{kv.Absent("a")}, Then: []kv.Op{kv.Read("there"), kv.Put("a", nil)}},
			kv.Txn{If: []kv.Cond{kv.Absent("there")}, Then: []kv.Op{kv.Put("b", nil)}, Else: []kv.Op{kv.Read("none"), kv.Read("there")}},
			kv.Txn{If: []kv.Cond{kv.CreatedAt("there", there)}, Then: []kv.Op{kv.Put("c", nil), kv.Delete("d")}})()
		assert.Equal(t, before+2, s.sent(), "the one in flight, and one for the others")
		value := kv.Entry{Key: "there", Value: []byte("value"), Created: there, Modified: there}
		assert.Equal(t, []outcome{
			{Result: kv.Result{Held: true, Revision: there + 2, Reads: [][]kv.Entry{{value}}}},
			{Result: kv.Result{Held: false, Revision: there + 2, Reads: [][]kv.Entry{{}, {value}}}},
			{Result: kv.Result{Held: true, Revision: there + 2}},
		}, outcomes)
		keys, err := s.Keys(t.Context(), "")
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "c", "first", "there"}, keys)
	})
}

// A transaction that depends on another one, and one that must not share the other's revision, has a revision of its
// own. All go at once.
func TestDependentTransactionsShareNothing(t *testing.T) {
	for name, pair := range map[string][2]kv.Txn{
		"both change a key":      {putting("a/x"), {Then: []kv.Op{kv.Delete("a/x")}}},
		"one reads a key":        {putting("a/x"), {Then: []kv.Op{kv.Put("b", nil), kv.Read("a/x")}}},
		"one reads a prefix":     {{Then: []kv.Op{kv.Put("b", nil), kv.ReadUnder("a/")}}, putting("a/x")},
		"one checks a key":       {putting("a/x"), {If: []kv.Cond{kv.Exists("a/x")}, Then: []kv.Op{kv.Put("b", nil)}}},
		"one checks a prefix":    {{If: []kv.Cond{kv.NoneUnder("a/")}, Then: []kv.Op{kv.Put("b", nil)}}, putting("a/x")},
		"one checks a range":     {putting("a/x"), {If: []kv.Cond{kv.NoneBetween("a/w", "a/y")}, Then: []kv.Op{kv.Put("b", nil)}}},
		"one reads if refused":   {putting("a/x"), {If: []kv.Cond{kv.Exists("b")}, Then: []kv.Op{kv.Put("c", nil)}, Else: []kv.Op{kv.Read("a/x")}}},
		"one changes if refused": {putting("a/x"), {If: []kv.Cond{kv.Exists("b")}, Else: []kv.Op{kv.Put("a/x", nil)}}},
		"one deletes a prefix":   {putting("a/x"), {Then: []kv.Op{kv.DeleteUnder("a/")}}},
		"both have a name":       {{Then: []kv.Op{kv.Put("a", nil)}, Apart: "n"}, {Then: []kv.Op{kv.Put("b", nil)}, Apart: "n"}},
	} {
		t.Run(name, func(t *testing.T) {
			overSlowLink(t, func(t *testing.T, s *slowLink) {
				begun := time.Now()
				outcomes := s.together(t, pair[0], pair[1], putting("z"))()
				assert.Equal(t, 10*time.Millisecond, time.Since(begun), "one request after the other would take longer")
				for _, o := range outcomes {
					require.NoError(t, o.err)
				}
				assert.Equal(t, 3, s.sent(), "the one in flight, the dependent one, and one for the others")
				if outcomes[0].Held && outcomes[1].Held {
					assert.NotEqual(t, outcomes[0].Revision, outcomes[1].Revision)
				}
			})
		})
	}
}

// A transaction that reads all keys depends on every other one.
func TestReadingAllKeysSharesNothing(t *testing.T) {
	overSlowLink(t, func(t *testing.T, s *slowLink) {
		outcomes := s.together(t, putting("a"), kv.Txn{Then: []kv.Op{kv.ReadUnder(""), kv.Put("b", nil)}})()
		assert.NotEqual(t, outcomes[0].Revision, outcomes[1].Revision)
	})
}

// Transactions are independent if the ranges that one reads end before the key that the other one changes.
func TestNeighboursShareARequest(t *testing.T) {
	overSlowLink(t, func(t *testing.T, s *slowLink) {
		outcomes := s.together(t, putting("a/x"), putting("b"),
			kv.Txn{If: []kv.Cond{kv.NoneBetween("a/", "a/x"), kv.NoneUnder("a/xx"), kv.NoneBetween("a/xx", "b")}, Then: []kv.Op{kv.Put("c", nil)}, Apart: "n"},
			kv.Txn{Then: []kv.Op{kv.Put("d", nil)}, Apart: "m"})()
		for _, o := range outcomes {
			assert.Equal(t, outcome{Result: kv.Result{Held: true, Revision: outcomes[0].Revision}}, o)
		}
	})
}

// The unknown outcome of a shared request is unknown for each of its transactions.
func TestUnknownOutcomeOfASharedRequest(t *testing.T) {
	overSlowLink(t, func(t *testing.T, s *slowLink) {
		outcomes := s.together(t, putting("a"), putting("b"))
		s.mu.Lock()
		s.after = memory.ErrLost
		s.mu.Unlock()
		for _, o := range outcomes() {
			assert.Equal(t, kv.Result{}, o.Result)
			assert.ErrorIs(t, o.err, kv.ErrUnavailable)
		}
		keys, err := s.Keys(t.Context(), "")
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b", "first"}, keys, "only the answer was lost")
	})
}

// A caller that gives up before its transaction is sent, or while it is in flight, does not affect the others.
func TestACallerGivesUp(t *testing.T) {
	for name, wait := range map[string]time.Duration{"before it is sent": 2 * time.Millisecond, "in flight": 7 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			overSlowLink(t, func(t *testing.T, s *slowLink) {
				ctx, cancel := context.WithCancel(t.Context())
				outcomes := s.together(t, putting("a"))
				var given sync.WaitGroup
				given.Go(func() {
					_, err := s.Commit(ctx, putting("b"))
					assert.ErrorIs(t, err, context.Canceled)
				})
				time.Sleep(wait)
				cancel()
				given.Wait()
				sent := s.sent()
				require.NoError(t, outcomes()[0].err)
				keys, err := s.Keys(t.Context(), "b")
				require.NoError(t, err)
				assert.Equal(t, map[bool]int{true: 1, false: 0}[sent == 2], len(keys))
			})
		})
	}
}

// After a refusal, nothing is sent for a caller that gave up meanwhile.
func TestACallerGivesUpBeforeARefusal(t *testing.T) {
	overSlowLink(t, func(t *testing.T, s *slowLink) {
		ctx, cancel := context.WithCancel(t.Context())
		outcomes := s.together(t, putting("a"))
		s.mu.Lock()
		s.refuses = rpctypes.ErrGRPCDuplicateKey
		s.mu.Unlock()
		var given sync.WaitGroup
		given.Go(func() {
			_, err := s.Commit(ctx, putting("b"))
			assert.ErrorIs(t, err, context.Canceled)
		})
		time.Sleep(7 * time.Millisecond)
		assert.Equal(t, 2, s.sent(), "the shared request is in flight")
		cancel()
		given.Wait()
		require.NoError(t, outcomes()[0].err)
		keys, err := s.Keys(t.Context(), "")
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "first"}, keys)
	})
}

// Close ends the transactions that wait, even behind a request that hangs.
func TestCloseEndsWaitingTransactions(t *testing.T) {
	overSlowLink(t, func(t *testing.T, s *slowLink) {
		s.hangs = make(chan struct{})
		hangs := s.hangs
		var committing sync.WaitGroup
		for i := range 3 {
			committing.Go(func() {
				_, err := s.Commit(t.Context(), putting(fmt.Sprint(i)))
				assert.Error(t, err)
				if i == 2 {
					close(hangs)
				}
			})
			synctest.Wait()
		}
		require.NoError(t, s.Close())
		committing.Wait()
	})
}

// A request that hangs holds up the transactions after it for a moment only, and those that come later not at all.
func TestAHangingRequestHoldsUpNothing(t *testing.T) {
	overSlowLink(t, func(t *testing.T, s *slowLink) {
		s.hangs = make(chan struct{})
		hangs := s.hangs
		begun := time.Now()
		outcomes := s.together(t, putting("a"), putting("b"))
		time.Sleep(30 * time.Millisecond) // patience, and the request
		assert.Equal(t, 2, s.sent())
		put(t, s.Store, "c", "")
		assert.Equal(t, 35*time.Millisecond, time.Since(begun))
		close(hangs)
		for _, o := range outcomes() {
			assert.NoError(t, o.err)
		}
		put(t, s.Store, "d", "")
	})
}

// etcd refuses a shared request because of one transaction. The others are committed nevertheless.
func TestARefusedTransactionAffectsNoOther(t *testing.T) {
	everyWay(t, func(t *testing.T, s *kv.Store) {
		waiting := kv.Hold(s)
		var committing sync.WaitGroup
		ended, err := s.Countdown(t.Context(), time.Minute)
		require.NoError(t, err)
		require.NoError(t, ended.Close(t.Context()))
		errs := make([]error, 4)
		for i, op := range []kv.Op{kv.Put("a", nil), kv.PutKept("missing", nil), kv.Put("b", nil), kv.PutBound("c", nil, ended)} {
			committing.Go(func() { _, errs[i] = s.Commit(t.Context(), kv.Txn{Then: []kv.Op{op}}) })
		}
		waiting(t, 4)
		committing.Wait()
		assert.NoError(t, errs[0])
		assert.Error(t, errs[1])
		assert.NoError(t, errs[2])
		assert.Error(t, errs[3])
		keys, err := s.Keys(t.Context(), "")
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b"}, keys)
	})
}

// More transactions than etcd admits in one, in number, in length or in size, go in several.
func TestSharedRequestsHaveLimits(t *testing.T) {
	everyWay(t, func(t *testing.T, s *kv.Store) {
		waiting := kv.Hold(s)
		const many = 100
		var committing sync.WaitGroup
		for i := range many {
			committing.Go(func() {
				txn := putting(fmt.Sprint("key/", i))
				for j := range i % 100 {
					txn.If = append(txn.If, kv.Absent(fmt.Sprint("none/", j)))
				}
				if i%4 == 0 {
					txn.Then[0] = kv.Put(fmt.Sprint("key/", i), make([]byte, 60<<10))
				}
				r, err := s.Commit(t.Context(), txn)
				assert.NoError(t, err)
				assert.True(t, r.Held)
			})
		}
		waiting(t, many)
		committing.Wait()
		n, err := s.Count(t.Context(), "key/")
		require.NoError(t, err)
		assert.Equal(t, int64(many), n)
	})
}

// Counters that many goroutines increase by compare-and-swap lose no increase, whatever shares a request.
func TestSharedRequestsLoseNothing(t *testing.T) {
	everyWay(t, func(t *testing.T, s *kv.Store) {
		const counters, goroutines, each = 5, 20, 10
		var counting sync.WaitGroup
		for g := range goroutines {
			counting.Go(func() {
				for i := range each {
					key := fmt.Sprint("counter/", (g+i)%counters)
					for held := false; !held; {
						e, _, err := s.Get(t.Context(), key)
						if !assert.NoError(t, err) {
							return
						}
						e.Key = key
						r, err := s.Commit(t.Context(), kv.Txn{If: []kv.Cond{kv.Unchanged(e)}, Then: []kv.Op{kv.Put(key, append(e.Value, '+'))}})
						if !assert.NoError(t, err) {
							return
						}
						held = r.Held
					}
				}
			})
		}
		counting.Wait()
		list, _, err := s.Range(t.Context(), "counter/")
		require.NoError(t, err)
		total := 0
		for _, e := range list {
			total += len(e.Value)
		}
		assert.Equal(t, goroutines*each, total)
	})
}
