package locks

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

func opened(t *testing.T) *Table {
	t.Helper()
	return openOver(t, kvtest.Open(t))
}

// openOver opens a table over a store until the test ends.
func openOver(t *testing.T, store Store) *Table {
	t.Helper()
	table, err := Open(t.Context(), store, Config{})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	return table
}

// stopWatching ends the watch of the table: its view of the store no longer changes.
func (t *Table) stopWatching() {
	t.stop()
	t.running.Wait()
}

// leased acquires the place "a" for a holder. It returns the lease as its holder and as the store records it.
func leased(t *testing.T, table *Table, holder string, ttl time.Duration) (Lease, storedLease) {
	t.Helper()
	lease, err := table.Acquire(t.Context(), Request{Paths: []Path{{"a"}}, Holder: Holder{ID: holder}, TTL: ttl})
	require.NoError(t, err)
	s, err := table.byID(t.Context(), lease.ID, holder)
	require.NoError(t, err)
	return lease, s
}

// A lease ends at the time that its holder received, however late this server's watch shows it.
func TestALateWatchAddsNoTime(t *testing.T) {
	table := opened(t)
	due := func(at time.Time) []Due {
		list, _ := table.Due(at)
		return list
	}
	request := Request{Paths: []Path{{"a"}}, Mode: Exclusive, Slots: 1, Holder: Holder{ID: "ann", Name: "Ann"}, TTL: time.Minute}
	c := newTicket(request, time.Now())
	var (
		lease Lease
		err   error
	)
	granted := make(chan struct{})
	table.behind(func() {
		go func() { // the server notes its own grant in the same view
			defer close(granted)
			lease, _, err = table.grab(t.Context(), c)
		}()
		require.Eventually(t, func() bool {
			e, _, err := table.store.Get(t.Context(), c.keys()[0])
			return err == nil && e.Found()
		}, 30*time.Second, time.Millisecond)
	})
	<-granted
	require.NoError(t, err)
	require.Eventually(t, table.sees(lease.ExpiresAt), 5*time.Second, time.Millisecond)
	assert.Empty(t, due(lease.ExpiresAt.Add(-time.Nanosecond)), "the lease does not end before its time")
	assert.Len(t, due(lease.ExpiresAt), 1)

	expires := time.Now().Add(time.Minute)
	table.behind(func() {
		table.mirror.own.make(c.claim, expires)
		held, err := table.beat(t.Context(), storedLease{c.claim, c.keys()[0], lease.Token}, lease.Token, expires)
		require.NoError(t, err)
		require.True(t, held)
	})
	require.Eventually(t, table.sees(expires), 5*time.Second, time.Millisecond)
	assert.Empty(t, due(expires.Add(-time.Nanosecond)))
	assert.Len(t, due(expires), 1)

	require.NoError(t, table.Release(t.Context(), lease.ID, "ann"))
	require.Eventually(t, func() bool {
		table.mirror.own.mu.Lock()
		defer table.mirror.own.mu.Unlock()
		return len(table.mirror.own.made) == 0
	}, 30*time.Second, time.Millisecond)
}

// behind has the watch show the change 200 ms later.
func (t *Table) behind(change func()) {
	t.mirror.mu.Lock()
	change()
	time.Sleep(200 * time.Millisecond)
	t.mirror.mu.Unlock()
}

// sees returns a function that reports whether the watch has shown the only lease with this time of expiry.
func (t *Table) sees(expires time.Time) func() bool {
	return func() bool {
		t.mirror.mu.Lock()
		defer t.mirror.mu.Unlock()
		for _, h := range t.mirror.held {
			return h.expires.UnixMilli() == expires.UnixMilli()
		}
		return false
	}
}

// A lease that expires before the watch has shown it is refused too.
func TestLeaseUnknownToTheWatchEnds(t *testing.T) {
	table := opened(t)
	table.stopWatching()
	request := Request{Paths: []Path{{"a"}}, Mode: Exclusive, Slots: 1, Holder: Holder{ID: "ann", Name: "Ann"}, TTL: 50 * time.Millisecond}
	lease, _, err := table.grab(t.Context(), newTicket(request, time.Now()))
	require.NoError(t, err)
	time.Sleep(time.Until(lease.ExpiresAt))
	_, err = table.Fence(t.Context(), Path{"a"}, "ann", lease.Token)
	require.ErrorIs(t, err, ErrStaleToken)
	_, err = table.Acquire(t.Context(), request)
	require.NoError(t, err)
}

// expire makes all promises those of leases whose time is over.
func (p *promises) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, made := range p.made {
		for i := range made {
			made[i].until = time.Now()
		}
	}
}

// The promise for a former lease does not apply to the next one, which another server granted.
func TestPromiseAppliesToOneLease(t *testing.T) {
	store := kvtest.Open(t)
	table := openOver(t, store)
	table.stopWatching()
	other := openOver(t, store)
	request := Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "ann", Name: "Ann"}, TTL: time.Minute}
	first, err := table.Acquire(t.Context(), request)
	require.NoError(t, err)
	require.NoError(t, other.Release(t.Context(), first.ID, "ann"))
	request.Holder = Holder{ID: "bob", Name: "Bob"}
	second, err := other.Acquire(t.Context(), request)
	require.NoError(t, err)
	table.mirror.own.expire()
	request.Holder = Holder{ID: "eve", Name: "Eve"}
	_, err = table.Acquire(t.Context(), request)
	var denied *DeniedError
	require.ErrorAs(t, err, &denied)
	_, err = other.Renew(t.Context(), second.ID, "bob")
	require.NoError(t, err)
}

// Of two concurrent heartbeats the store keeps one, and both holders received an expiry. The later one counts.
func TestOfTwoPromisesTheLaterIsKept(t *testing.T) {
	p := promises{made: map[string][]promise{}}
	c := claim{Mode: Exclusive, Paths: []Path{{"a"}}, Lease: "lease"}
	early := time.Now().Add(time.Minute)
	late := early.Add(5 * time.Millisecond)
	p.make(c, late)
	p.make(c, early)
	_, ok := p.of(c.beatKey(), early)
	assert.False(t, ok, "the time of the watch counts, which is later than both")
	until, ok := p.of(c.beatKey(), late)
	assert.True(t, ok)
	assert.Equal(t, late, until)
	p.sweep(early)
	assert.Len(t, p.made, 1)
	p.sweep(late)
	assert.Empty(t, p.made)
}

// A lease that begins before the watch shows the end of the last one gets no time from the delay, and a refused
// request takes none of its holder's.
func TestPromiseCountsForNoOtherLeaseOfThePlace(t *testing.T) {
	table := opened(t)
	first, _ := leased(t, table, "ann", time.Minute)
	require.Eventually(t, table.sees(first.ExpiresAt), 30*time.Second, time.Millisecond)
	own := table.mirror.own
	second := claim{Mode: Exclusive, Paths: []Path{{"a"}}, Lease: "second"}
	until := time.Now().Add(time.Second)
	own.make(second, until)
	_, err := table.Acquire(t.Context(), Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "bob"}, TTL: time.Hour})
	require.Error(t, err)
	_, _, err = table.grab(t.Context(), newTicket(Request{Paths: []Path{{"a"}}, Mode: Exclusive, Slots: 1, Holder: Holder{ID: "bob"}, TTL: time.Hour}, time.Now()))
	require.NoError(t, err)
	got, ok := own.of(second.beatKey(), first.ExpiresAt)
	assert.True(t, ok, "a refused request leaves the holder's")
	assert.Equal(t, first.ExpiresAt, got)
	require.NoError(t, table.Release(t.Context(), first.ID, "ann"))
	require.Eventually(t, func() bool { _, ok := own.of(second.beatKey(), first.ExpiresAt); return !ok }, 30*time.Second, time.Millisecond)
	got, ok = own.of(second.beatKey(), until)
	assert.True(t, ok, "the next lease keeps its own")
	assert.Equal(t, until, got)
}

// A grant that the store refuses leaves no promise.
func TestRefusedGrantLeavesNoPromise(t *testing.T) {
	table := opened(t)
	table.stopWatching()
	other := openOver(t, table.store)
	leased(t, other, "ann", time.Hour)
	_, err := table.Acquire(t.Context(), Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "bob"}, TTL: time.Hour})
	require.ErrorAs(t, err, new(*DeniedError))
	assert.Empty(t, table.mirror.own.made)
}
