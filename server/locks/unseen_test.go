package locks

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// The releasing server's view lacks a waiter on another server.
func TestTransferredToAnUnseenWaiter(t *testing.T) {
	store := kvtest.Open(t)
	var reasons []Reason
	blind, err := Open(t.Context(), store, Config{Record: func(_ string, c Change) []kv.Op {
		if !c.Locked {
			reasons = append(reasons, c.Reason)
		}
		return nil
	}})
	require.NoError(t, err)
	blind.stopWatching()
	defer blind.Close()
	other := openOver(t, kvtest.Again(t, store))

	document := Document("r")
	held, err := blind.Acquire(t.Context(), Request{Paths: []Path{document}, Holder: Holder{ID: "ann"}, TTL: time.Minute})
	require.NoError(t, err)
	granted := make(chan error, 1)
	go func() {
		_, err := other.Acquire(t.Context(), Request{Paths: []Path{document}, Holder: Holder{ID: "bob"}, TTL: time.Minute, Wait: 20 * time.Second})
		granted <- err
	}()
	require.Eventually(t, func() bool {
		_, waiters, err := other.Inspect(t.Context(), document)
		return err == nil && len(waiters) == 1
	}, 30*time.Second, time.Millisecond)
	require.NoError(t, blind.Release(t.Context(), held.ID, "ann"))
	require.NoError(t, <-granted)
	assert.Equal(t, Transferred, reasons[len(reasons)-1])
	require.NoError(t, other.ReleaseAt(t.Context(), document, "bob", 0))
}

// The releasing server's view still has the place in the queue from which the lease was granted.
func TestReleasedAfterAnUnseenGrant(t *testing.T) {
	var reasons []Reason
	blind, err := Open(t.Context(), kvtest.Open(t), Config{Record: func(_ string, c Change) []kv.Op {
		if !c.Locked {
			reasons = append(reasons, c.Reason)
		}
		return nil
	}})
	require.NoError(t, err)
	defer blind.Close()
	r, err := Request{Paths: []Path{Document("r")}, Holder: Holder{ID: "ann"}, TTL: time.Minute}.normal()
	require.NoError(t, err)
	own := newTicket(r, time.Now())
	require.NoError(t, blind.join(t.Context(), own, time.Minute))
	require.Eventually(t, func() bool { return blind.Waiting() == 1 }, 30*time.Second, time.Millisecond)
	blind.stopWatching()
	lease, result, err := blind.grab(t.Context(), own)
	require.NoError(t, err)
	require.True(t, result.Held)
	require.NoError(t, blind.Release(t.Context(), lease.ID, "ann"))
	assert.Equal(t, []Reason{Released}, reasons)
}

// A browser has two ids, and its request for a lock that does not exclude others was granted to the former id at another server. It comes again
// with its ticket to a server that has not seen the grant. Under the later id, the browser would get a second lock.
func TestHolderOfTheTicketOfAnUnseenGrant(t *testing.T) {
	store := kvtest.Open(t)
	blind, other := openOver(t, store), openOver(t, kvtest.Again(t, store))
	blind.stopWatching()
	for _, r := range []Request{{Ticket: "shared", Mode: Shared}, {Ticket: "slots", Slots: 2}} {
		r.Paths, r.Holder, r.TTL = []Path{{r.Ticket}}, Holder{ID: "former"}, time.Minute
		_, err := other.Acquire(t.Context(), r)
		require.NoError(t, err)
		owner, err := blind.HolderOfTicket(t.Context(), r.Ticket, []string{"later", "former"})
		require.NoError(t, err)
		assert.Equal(t, "former", owner, r.Ticket)
	}
}

// A request whose successor came to another server is no longer granted, although its own server's view lacks the
// successor.
func TestNoGrantAfterALaterVisit(t *testing.T) {
	table := opened(t)
	r, err := Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "ann"}, TTL: time.Minute, Ticket: "x"}.normal()
	require.NoError(t, err)
	former, later := newTicket(r, time.Now()), newTicket(r, time.Now())
	require.NoError(t, table.join(t.Context(), former, time.Minute))
	require.NoError(t, table.join(t.Context(), later, time.Minute))
	_, result, err := table.grab(t.Context(), former)
	require.NoError(t, err)
	assert.False(t, result.Held)
	lease, result, err := table.grab(t.Context(), later)
	require.NoError(t, err)
	assert.True(t, result.Held)
	require.NoError(t, table.Release(t.Context(), lease.ID, "ann"))
}

// Shared requests do not wait for each other, so the successor of a waiting request may be granted without joining
// the queue: its server's view shows no conflict, the other's does. The earlier request must not stay in the queue.
func TestReplacedRequestLeavesQueueThatItsSuccessorNeverJoined(t *testing.T) {
	store := kvtest.Open(t)
	table := openOver(t, store)
	blind := openOver(t, store)
	r, err := Request{Paths: []Path{{"a"}}, Mode: Shared, Holder: Holder{ID: "ann"}, TTL: time.Minute, Ticket: "x"}.normal()
	require.NoError(t, err)
	former := newTicket(r, time.Now())
	require.NoError(t, blind.join(t.Context(), former, time.Minute))
	require.Eventually(t, func() bool {
		blind.mirror.mu.Lock()
		defer blind.mirror.mu.Unlock()
		return blind.mirror.revision >= former.joined
	}, 30*time.Second, time.Millisecond)
	blind.stopWatching()
	lease, err := table.Acquire(t.Context(), r)
	require.NoError(t, err)

	_, err = blind.waitAt(t.Context(), former)
	assert.ErrorIs(t, err, ErrReplaced)
	blind.leave(former)
	require.NoError(t, table.Release(t.Context(), lease.ID, "ann"))
	_, err = table.Acquire(t.Context(), Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "eve"}, TTL: time.Minute})
	assert.NoError(t, err)
}

// The place in the queue is lost before this server's view shows it. The server sees its beginning and its end at
// once.
func TestAPlaceThatWasLostUnseenIsTakenAgain(t *testing.T) {
	store := kvtest.Open(t)
	table := openOver(t, store)
	r, err := Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "ann"}, TTL: time.Minute}.normal()
	require.NoError(t, err)
	table.stopWatching()
	own := newTicket(r, time.Now())
	require.NoError(t, table.join(t.Context(), own, time.Minute))
	key := own.waitKeys()[0]
	entry, _, err := store.Get(t.Context(), key)
	require.NoError(t, err)
	gone, err := store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Delete(key)}}) // as when its lease expires
	require.NoError(t, err)
	table.mirror.apply([]kv.Change{{Entry: entry}, {Entry: kv.Entry{Key: key, Modified: gone.Revision}, Deleted: true}}, time.Now())

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = table.waitAt(ctx, own)
	assert.ErrorIs(t, err, errLeftLine)
}

// A request with the ticket of a grant gets that lease, even if the server's view lacks it or the grant is being made
// at that moment.
func TestAGrantIsFoundByItsTicket(t *testing.T) {
	store := kvtest.Open(t)
	table := openOver(t, store)
	r, err := Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "ann"}, TTL: time.Minute, Ticket: "x", Fresh: true}.normal()
	require.NoError(t, err)
	former, later := newTicket(r, time.Now()), newTicket(r, time.Now())
	require.NoError(t, table.join(t.Context(), former, time.Minute))
	unreceived, result, err := table.grab(t.Context(), former)
	require.NoError(t, err)
	require.True(t, result.Held)

	require.NoError(t, table.join(t.Context(), later, time.Minute))
	_, err = table.waitAt(t.Context(), later)
	require.ErrorIs(t, err, errGranted)
	table.leave(later)
	received, err := table.Acquire(t.Context(), r)
	require.NoError(t, err)
	assert.Equal(t, unreceived.Token, received.Token)

	table.mirror.mu.Lock()
	table.mirror.clear()
	table.mirror.mu.Unlock()
	received, err = table.Acquire(t.Context(), r)
	require.NoError(t, err)
	assert.Equal(t, unreceived.Token, received.Token)
}

// countedReads counts the reads of a store.
type countedReads struct {
	Store
	reads int
}

func (c *countedReads) Get(ctx context.Context, key string) (kv.Entry, int64, error) {
	c.reads++
	return c.Store.Get(ctx, key)
}

// A holder may extend and release before this server's watch has shown the grant. The server knows its own grants.
func TestServerKnowsItsOwnGrantsBeforeTheWatchShowsThem(t *testing.T) {
	store := &countedReads{Store: kvtest.Open(t)}
	blind := openOver(t, store)
	blind.stopWatching()
	for range 3 {
		lease, err := blind.Acquire(t.Context(), Request{Paths: []Path{Document("r")}, Holder: Holder{ID: "ann"}, TTL: time.Minute})
		require.NoError(t, err)
		_, seen := blind.seenAt(Document("r"), "bob")
		assert.False(t, seen, "it is somebody else's")
		s, seen := blind.seenAt(Document("r"), "ann")
		assert.True(t, seen)
		assert.Equal(t, lease.Token, s.token)
		require.NoError(t, blind.Release(t.Context(), lease.ID, "ann"))
	}
	assert.Zero(t, store.reads)
	assert.Empty(t, blind.mirror.granted, "an ended lease leaves no entry")
}

// A holder extends and releases at another server than the one that granted its lease. That server has seen the grant, and need not read it.
func TestServerKnowsTheGrantsOfOthers(t *testing.T) {
	store := &countedReads{Store: kvtest.Open(t)}
	table := openOver(t, store)
	other := openOver(t, store.Store)
	lease, err := other.Acquire(t.Context(), Request{Paths: []Path{Document("r")}, Holder: Holder{ID: "ann"}, TTL: time.Minute})
	require.NoError(t, err)
	require.NoError(t, table.catchUpTo(t.Context(), lease.Token))
	_, err = table.RenewAt(t.Context(), Document("r"), "ann", lease.Token)
	require.NoError(t, err)
	require.NoError(t, table.ReleaseAt(t.Context(), Document("r"), "ann", lease.Token))
	assert.Zero(t, store.reads)
}

// A later change by another server takes precedence over this server's record of its own grant.
func TestRememberedGrantThatEndedElsewhere(t *testing.T) {
	store := kvtest.Open(t)
	blind := openOver(t, store)
	blind.stopWatching()
	other := openOver(t, kvtest.Again(t, store))
	request := Request{Paths: []Path{Document("r")}, Holder: Holder{ID: "ann"}, TTL: time.Minute}
	_, err := blind.Acquire(t.Context(), request)
	require.NoError(t, err)
	require.NoError(t, other.ReleaseAt(t.Context(), Document("r"), "ann", 0))
	later, err := other.Acquire(t.Context(), request)
	require.NoError(t, err)
	require.NoError(t, blind.ReleaseAt(t.Context(), Document("r"), "ann", later.Token))
	lease, _, err := other.At(t.Context(), Document("r"))
	require.NoError(t, err)
	assert.Zero(t, lease.Token)
}

// Two requests with one ticket are under way at once, because the network or a proxy has duplicated one. They get one
// lease, although two such leases would not exclude each other.
func TestOneTicketGetsOneLease(t *testing.T) {
	for name, kind := range map[string]Request{"shared": {Mode: Shared}, "slots": {Slots: 3}} {
		t.Run(name, func(t *testing.T) {
			table, store, _ := opensFaulty(t)
			request := func(holder, ticket string) Request {
				r := kind
				r.Paths, r.Holder, r.TTL, r.Ticket = []Path{{"a"}}, Holder{ID: holder}, time.Minute, ticket
				return r
			}
			eve, err := table.Acquire(t.Context(), request("eve", "e"))
			require.NoError(t, err)
			delayed, again := make(chan struct{}), make(chan struct{})
			store.set(func(f *faulty) {
				f.before = func(kv.Txn) error {
					store.set(func(f *faulty) { f.before = nil })
					close(delayed)
					<-again
					return nil
				}
			})
			first := make(chan Lease, 1)
			go func() {
				lease, err := table.Acquire(t.Context(), request("ann", "x"))
				assert.NoError(t, err)
				first <- lease
			}()
			<-delayed
			require.NoError(t, table.Release(t.Context(), eve.ID, "eve")) // the second request finds another slot free
			second, err := table.Acquire(t.Context(), request("ann", "x"))
			require.NoError(t, err)
			close(again)
			assert.Equal(t, second.Token, (<-first).Token)
			require.NoError(t, table.Release(t.Context(), second.ID, "ann"))
			left, err := store.Keys(t.Context(), "locks/")
			require.NoError(t, err)
			left = slices.DeleteFunc(left, func(key string) bool { return strings.HasPrefix(key, gonePrefix) })
			assert.Empty(t, left)
		})
	}
}

// A request with the ticket of a grant is refused at the revision of some other change, which this server's view of the
// locks never shows. The request waits for the grant only.
func TestTheTicketOfAGrantWaitsForNoOtherChange(t *testing.T) {
	table, store, _ := opensFaulty(t)
	r := Request{Paths: []Path{{"a"}}, Mode: Shared, Holder: Holder{ID: "ann"}, TTL: time.Minute, Ticket: "x"}
	var first Lease
	store.set(func(f *faulty) {
		f.before = func(txn kv.Txn) error {
			if !grants(txn) {
				return nil
			}
			store.set(func(f *faulty) { f.before = nil })
			var err error
			if first, err = table.Acquire(t.Context(), r); err == nil {
				_, err = store.Store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("rooms/r", nil)}})
			}
			return err
		}
	})
	second, err := table.Acquire(t.Context(), r)
	require.NoError(t, err)
	assert.Equal(t, first.Token, second.Token)
}

// The view of a server shows at once that a ticket's lease has ended and that another owner has the same slot. The
// ticket is not for another lock because of that.
func TestTheSlotOfATicketHasAnotherOwner(t *testing.T) {
	table := opened(t)
	r, err := Request{Paths: []Path{{"a"}}, Slots: 2, Holder: Holder{ID: "ann"}, TTL: time.Minute, Ticket: "x"}.normal()
	require.NoError(t, err)
	first, err := table.Acquire(t.Context(), r)
	require.NoError(t, err)
	own := newTicket(r, time.Now())
	refused, err := table.store.Commit(t.Context(), kv.Txn{If: own.preconditions().conditions, Else: own.preconditions().reads})
	require.NoError(t, err)
	require.False(t, refused.Held)
	require.NoError(t, table.Release(t.Context(), first.ID, "ann"))
	require.NoError(t, table.catchUp(t.Context()))
	bob := r
	bob.Holder.ID, bob.Ticket = "bob", ""
	second, err := table.Acquire(t.Context(), bob)
	require.NoError(t, err)
	require.Equal(t, first.Slot, second.Slot)
	require.NoError(t, table.catchUpTo(t.Context(), second.Token))
	require.ErrorIs(t, table.grantedBefore(t.Context(), own, readConflicts(refused.Reads)), errGranted)
	_, err = table.Acquire(t.Context(), r)
	require.ErrorIs(t, err, ErrGivenUp)
}

// The view lacks the release of a lease for which another request waits. A refusal names only the holders that the store has: a caller that finds
// none of them in the store would ask again at once, and again, until the view shows the release.
func TestARefusalNamesNoHolderThatHasReleasedUnseen(t *testing.T) {
	blind := opened(t)
	lease, _ := leased(t, blind, "ann", time.Minute)
	r, err := Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "bob"}, TTL: time.Minute}.normal()
	require.NoError(t, err)
	waiter := newTicket(r, time.Now())
	require.NoError(t, blind.join(t.Context(), waiter, time.Minute))
	require.NoError(t, blind.catchUp(t.Context()))
	r.Holder.ID = "cleo"
	var denied *DeniedError
	_, err = blind.Acquire(t.Context(), r)
	require.ErrorAs(t, err, &denied)
	require.Len(t, denied.Holders, 1)

	blind.stopWatching()
	require.NoError(t, blind.Release(t.Context(), lease.ID, "ann"))
	_, err = blind.Acquire(t.Context(), r)
	require.ErrorAs(t, err, &denied)
	assert.Empty(t, denied.Holders, "bob waits and comes first")
}
