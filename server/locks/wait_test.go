package locks_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
)

type outcome struct {
	who   string
	lease locks.Lease
	err   error
}

// queue makes a request wait and returns once it has the n-th place in the queue.
func queue(t *testing.T, table *locks.Table, outcomes chan<- outcome, r locks.Request, n int) {
	t.Helper()
	queueUntil(t.Context(), t, table, outcomes, r, n)
}

func queueUntil(ctx context.Context, t *testing.T, table *locks.Table, outcomes chan<- outcome, r locks.Request, n int) {
	t.Helper()
	r.Wait = 20 * time.Second
	go func() {
		l, err := table.Acquire(ctx, r)
		outcomes <- outcome{r.Holder.Name, l, err}
	}()
	require.Eventually(t, func() bool {
		_, waiters, err := table.Inspect(t.Context(), r.Paths[0])
		return err == nil && len(waiters) >= n
	}, 30*time.Second, time.Millisecond)
}

func who(name string) locks.Holder { return locks.Holder{ID: name + "-1", Name: name} }

func TestFirstComeFirstServed(t *testing.T) {
	store := kvtest.Open(t)
	tables := []*locks.Table{open(t, store), open(t, kvtest.Again(t, store))}
	p := at("p")
	held, err := tables[0].Acquire(t.Context(), want(ann, p))
	require.NoError(t, err)
	outcomes := make(chan outcome, 10)
	for i := range 10 {
		queue(t, tables[i%2], outcomes, want(who(fmt.Sprint(i)), p), i+1)
	}
	require.NoError(t, tables[0].Release(t.Context(), held.ID, ann.ID))
	last := held.Token
	for i := range 10 {
		o := <-outcomes
		require.NoError(t, o.err)
		assert.Equal(t, fmt.Sprint(i), o.who)
		assert.Greater(t, o.lease.Token, last)
		last = o.lease.Token
		_, err := tables[1].Acquire(t.Context(), want(eve, p))
		assert.Error(t, err, "no request overtakes another")
		require.NoError(t, tables[i%2].Release(t.Context(), o.lease.ID, o.lease.Holder.ID))
	}
}

func TestWaitEndsByItsLimitOrItsContext(t *testing.T) {
	table := open(t, kvtest.Open(t))
	_, err := table.Acquire(t.Context(), want(ann, at("p")))
	require.NoError(t, err)
	r := want(bob, at("p"))
	r.Wait = 300 * time.Millisecond
	_, err = table.Acquire(t.Context(), r)
	require.ErrorIs(t, err, locks.ErrTimeout)
	var denied *locks.DeniedError
	require.ErrorAs(t, err, &denied)
	assert.Equal(t, ann, denied.Holders[0].Holder)

	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	r.Wait = long
	_, err = table.Acquire(ctx, r)
	require.ErrorIs(t, err, context.Canceled)

	_, waiters, err := table.Inspect(t.Context(), at("p"))
	require.NoError(t, err)
	assert.Empty(t, waiters, "both gave up their places")
}

func TestAnAbandonedLockGoesToTheFirstInLine(t *testing.T) {
	table := open(t, kvtest.Open(t))
	r := want(ann, at("p"))
	r.TTL = 200 * time.Millisecond
	start := time.Now()
	_, err := table.Acquire(t.Context(), r)
	require.NoError(t, err)
	w := want(bob, at("p"))
	w.Wait = long
	_, err = table.Acquire(t.Context(), w)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, time.Since(start), r.TTL, "the lease does not end before its time")
	assert.Less(t, time.Since(start), r.TTL+locks.Backstop, "a notification came before the backstop")
}

func TestACycleHasOneVictim(t *testing.T) {
	store := kvtest.Open(t)
	tables := []*locks.Table{open(t, store), open(t, kvtest.Again(t, store)), open(t, kvtest.Again(t, store))}
	for name, n := range map[string]int{"two": 2, "three": 3} {
		t.Run(name, func(t *testing.T) {
			var leases []locks.Lease
			for i := range n {
				l, err := tables[i].Acquire(t.Context(), want(who(fmt.Sprint(i)), at(name, fmt.Sprint(i))))
				require.NoError(t, err)
				leases = append(leases, l)
			}
			outcomes := make(chan outcome, n)
			var wait sync.WaitGroup
			for i := range n {
				wait.Go(func() {
					r := want(who(fmt.Sprint(i)), at(name, fmt.Sprint((i+1)%n)))
					r.Wait = 20 * time.Second
					l, err := tables[i].Acquire(t.Context(), r)
					outcomes <- outcome{fmt.Sprint(i), l, err}
				})
			}
			closed := time.Now() // an upper bound: the time in which the store queues everybody does not count
			for waiting := 0; waiting < n && len(outcomes) == 0; {
				_, waiters, err := tables[0].Inspect(t.Context(), at(name))
				require.NoError(t, err)
				if waiting = len(waiters); waiting < n {
					closed = time.Now()
				}
			}
			first := <-outcomes
			require.ErrorIs(t, first.err, locks.ErrDeadlock)
			assert.Less(t, time.Since(closed), locks.Backstop, "a notification came before the backstop")
			// The victim releases its locks, and everybody else gets theirs.
			victim := int(first.who[0] - '0')
			require.NoError(t, tables[victim].Release(t.Context(), leases[victim].ID, first.who+"-1"))
			for range n - 1 {
				o := <-outcomes
				require.NoError(t, o.err)
				i := int(o.who[0] - '0')
				require.NoError(t, tables[i].Release(t.Context(), o.lease.ID, o.who+"-1"))
				require.NoError(t, tables[i].Release(t.Context(), leases[i].ID, o.who+"-1"))
			}
			wait.Wait()
		})
	}
}

func TestNoDeadlockWithoutACycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New()
		table := locks.OpenInMemory(t, m, m.Client(nil))
		outcomes := make(chan outcome, 2)
		// Ann holds p and waits for q. Bob holds q and waits for r. Eve holds r. This is a chain, not a cycle.
		p, err := table.Acquire(t.Context(), want(ann, at("p")))
		require.NoError(t, err)
		q, err := table.Acquire(t.Context(), want(bob, at("q")))
		require.NoError(t, err)
		r, err := table.Acquire(t.Context(), want(eve, at("r")))
		require.NoError(t, err)
		queue(t, table, outcomes, want(ann, at("q")), 1)
		queue(t, table, outcomes, want(bob, at("r")), 1)
		time.Sleep(2 * locks.Backstop)
		require.Empty(t, outcomes, "there is no cycle")
		require.NoError(t, table.Release(t.Context(), r.ID, eve.ID))
		assert.NoError(t, (<-outcomes).err)
		require.NoError(t, table.Release(t.Context(), q.ID, bob.ID))
		assert.NoError(t, (<-outcomes).err)
		require.NoError(t, table.Release(t.Context(), p.ID, ann.ID))
	})
}

// Ann waits for p and q together. Bob holds p and wants q, which is free. Bob is behind Ann in the queue, but Ann
// waits for Bob.
func TestHolderOvertakesItsWaiter(t *testing.T) {
	table := open(t, kvtest.Open(t))
	outcomes := make(chan outcome, 2)
	p, err := table.Acquire(t.Context(), want(bob, at("p")))
	require.NoError(t, err)
	queue(t, table, outcomes, want(ann, at("p"), at("q")), 1)
	r := want(bob, at("q"))
	r.Wait = 5 * time.Second
	q, err := table.Acquire(t.Context(), r)
	require.NoError(t, err)
	require.NoError(t, table.Release(t.Context(), p.ID, bob.ID))
	require.NoError(t, table.Release(t.Context(), q.ID, bob.ID))
	assert.NoError(t, (<-outcomes).err)
}

// Three tabs of one owner queue like three owners.
func TestOneHolderWaitsInItsOwnLine(t *testing.T) {
	table := open(t, kvtest.Open(t))
	held, err := table.Acquire(t.Context(), want(ann, at("p")))
	require.NoError(t, err)
	outcomes := make(chan outcome, 2)
	queue(t, table, outcomes, want(locks.Holder{ID: ann.ID, Name: "first"}, at("p")), 1)
	queue(t, table, outcomes, want(locks.Holder{ID: ann.ID, Name: "second"}, at("p")), 2)
	require.NoError(t, table.Release(t.Context(), held.ID, ann.ID))
	first := <-outcomes
	require.NoError(t, first.err)
	assert.Equal(t, "first", first.who)
	require.NoError(t, table.Release(t.Context(), first.lease.ID, ann.ID))
	second := <-outcomes
	assert.NoError(t, second.err)
}

func TestAServerThatDiesLosesItsPlaces(t *testing.T) {
	store := kvtest.Open(t)
	table := open(t, store)
	held, err := table.Acquire(t.Context(), want(ann, at("p")))
	require.NoError(t, err)

	other := kvtest.Again(t, store)
	dying, err := locks.Open(t.Context(), other, locks.Config{InstanceTTL: time.Second})
	require.NoError(t, err)
	t.Cleanup(dying.Close)
	outcomes := make(chan outcome, 2)
	queue(t, dying, outcomes, want(bob, at("p")), 1)
	queue(t, table, outcomes, want(eve, at("p")), 2)
	require.NoError(t, other.Close()) // without a shutdown

	require.NoError(t, table.Release(t.Context(), held.ID, ann.ID))
	for range 2 {
		if o := <-outcomes; o.who == eve.Name {
			assert.NoError(t, o.err)
			return
		} else {
			assert.Error(t, o.err)
		}
	}
	assert.Fail(t, "Eve never got it")
}

// Parents and children race on three servers: both are never held. With RACES=, the servers use the three members of
// a cluster.
func TestParentsAndChildrenRace(t *testing.T) {
	races := 150
	var tables []*locks.Table
	if n, err := strconv.Atoi(os.Getenv("RACES")); err == nil {
		races = n
		for _, store := range kvtest.Cluster(t, 3) {
			tables = append(tables, open(t, store))
		}
	} else {
		store := kvtest.Open(t)
		tables = []*locks.Table{open(t, store), open(t, kvtest.Again(t, store)), open(t, kvtest.Again(t, store))}
	}
	granted := 0
	for i := range races {
		leases := make([]locks.Lease, 3)
		errs := make([]error, 3)
		root := fmt.Sprint("race", i)
		paths := []locks.Path{at(root), at(root, "child"), at(root, "child", "grandchild")}
		var wait sync.WaitGroup
		for j, table := range tables {
			wait.Go(func() { leases[j], errs[j] = table.Acquire(t.Context(), want(who(fmt.Sprint(j)), paths[(i+j)%3])) })
		}
		wait.Wait()
		winners := 0
		for j, err := range errs {
			var denied *locks.DeniedError
			if err == nil {
				winners++
				require.NoError(t, tables[j].Release(t.Context(), leases[j].ID, leases[j].Holder.ID))
			} else if !errors.As(err, &denied) {
				require.NoError(t, err)
			}
		}
		require.LessOrEqual(t, winners, 1, "race %d", i)
		granted += winners
	}
	assert.Equal(t, races, granted, "each race has a winner")
}

func TestManyInLineWakeOneByOne(t *testing.T) {
	store := kvtest.Open(t)
	table := open(t, store)
	var wait sync.WaitGroup
	var mu sync.Mutex
	inside, most := 0, 0
	for i := range 60 {
		wait.Go(func() {
			r := want(who(fmt.Sprint(i)), at("p"))
			r.Wait = long
			l, err := table.Acquire(t.Context(), r)
			if !assert.NoError(t, err) {
				return
			}
			mu.Lock()
			inside++
			most = max(most, inside)
			mu.Unlock()
			mu.Lock()
			inside--
			mu.Unlock()
			assert.NoError(t, table.Release(t.Context(), l.ID, l.Holder.ID))
		})
	}
	wait.Wait()
	assert.Equal(t, 1, most)
	entries, _, err := store.Range(t.Context(), "locks/")
	require.NoError(t, err)
	assert.Empty(t, entries, "nothing is left behind")
}
