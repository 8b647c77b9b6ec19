package opfs

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

func newEntry(id, client string, s state, mode lock.Mode, names ...string) *entry {
	e := &entry{id: id, client: client, state: s}
	for _, name := range names {
		e.wants = append(e.wants, lock.Want{Name: name, Mode: mode})
	}
	return e
}

func ids(entries []*entry) (ids []string) {
	for _, e := range entries {
		ids = append(ids, e.id)
	}
	return ids
}

func TestBlockersAreThoseBeforeThatConflict(t *testing.T) {
	table := &table{queue: []*entry{
		newEntry("h", "1", granted, lock.Shared, "a"),
		newEntry("p", "1", present, lock.Shared),
		newEntry("w", "2", waiting, lock.Exclusive, "a", "b"),
		newEntry("s", "3", waiting, lock.Shared, "a"),
		newEntry("c", "3", waiting, lock.Shared, "c"),
	}}
	assert.Equal(t, []string{"h"}, ids(table.blockers(table.find("w"))))
	assert.Equal(t, []string{"w"}, ids(table.blockers(table.find("s"))), "a shared request does not overtake")
	assert.Equal(t, []string{"w"}, ids(table.blockers(newEntry("new", "4", waiting, lock.Shared, "b"))))
	assert.Equal(t, []string{"c"}, ids(table.next()))
	table.remove(table.find("h"))
	assert.Equal(t, []string{"w", "c"}, ids(table.next()))
	table.recovery = &recovery{}
	assert.Empty(t, table.next())
}

// A stealer that knows the holders takes nothing from another client: only granted entries that share a name count.
func TestStealerFindsHoldersThatShareAName(t *testing.T) {
	stealer := newEntry("stealer", "4", waiting, lock.Exclusive, "a")
	for _, c := range []struct {
		other *entry
		is    bool
	}{
		{newEntry("known", "1", granted, lock.Exclusive, "a"), false},
		{newEntry("successor", "2", granted, lock.Exclusive, "b", "a"), true},
		{newEntry("reader", "2", granted, lock.Shared, "a"), true},
		{newEntry("waiter", "2", waiting, lock.Exclusive, "a"), false},
		{newEntry("elsewhere", "2", granted, lock.Exclusive, "b"), false},
	} {
		table := &table{queue: []*entry{newEntry("first", "1", granted, lock.Shared, "c"), c.other}}
		assert.Equal(t, c.is, table.heldByOther(stealer, []string{"1"}), c.other.id)
	}
}

// A client that was passed while it was frozen finds on waking that a holder stands behind it.
func TestPassedWaiterIsBlockedByLaterHolder(t *testing.T) {
	table := &table{queue: []*entry{
		newEntry("frozen", "1", waiting, lock.Exclusive, "a"),
		newEntry("passed", "2", granted, lock.Exclusive, "a"),
		newEntry("later", "3", waiting, lock.Exclusive, "a"),
	}}
	assert.Equal(t, []string{"passed"}, ids(table.blockers(table.find("frozen"))))
	assert.Empty(t, table.next())
	table.remove(table.find("passed"))
	assert.Equal(t, []string{"frozen"}, ids(table.next()))
}

// asked is a request for "a", unless names says otherwise, made so many microseconds after the start.
func asked(id string, after int64, names ...string) *entry {
	if names == nil {
		names = []string{"a"}
	}
	e := newEntry(id, id, waiting, lock.Exclusive, names...)
	e.asked = 1763687000000000 + after
	return e
}

func TestFirstRequestIsFirstInLine(t *testing.T) {
	holder := newEntry("h", "h", granted, lock.Exclusive, "a")
	for name, test := range map[string]struct {
		joining []*entry
		want    []string
	}{
		"as they arrive":      {[]*entry{asked("1", 1), asked("2", 2), asked("3", 3)}, []string{"h", "1", "2", "3"}},
		"the other way round": {[]*entry{asked("3", 3), asked("2", 2), asked("1", 1)}, []string{"h", "1", "2", "3"}},
		"into the middle":     {[]*entry{asked("1", 1), asked("3", 3), asked("2", 2)}, []string{"h", "1", "2", "3"}},
		"at once":             {[]*entry{asked("x", 1), asked("y", 1)}, []string{"h", "x", "y"}},
		"not before a holder": {[]*entry{asked("1", -5)}, []string{"h", "1"}},
		"past other names":    {[]*entry{asked("2", 2), asked("b", 9, "b"), asked("1", 1)}, []string{"h", "1", "2", "b"}},
		"not past one untold": {[]*entry{asked("2", 2), newEntry("old", "o", waiting, lock.Exclusive, "a"), asked("1", 1)}, []string{"h", "2", "old", "1"}},
		"untold itself":       {[]*entry{asked("2", 2), newEntry("old", "o", waiting, lock.Exclusive, "a")}, []string{"h", "2", "old"}},
		"late by the most":    {[]*entry{asked("2", lateness), asked("1", 0)}, []string{"h", "1", "2"}},
		"another clock":       {[]*entry{asked("2", lateness+1), asked("1", 0)}, []string{"h", "2", "1"}},
		"stops at another clock": {[]*entry{asked("3", 3), asked("2", lateness+2), asked("1", 1)},
			[]string{"h", "3", "2", "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			table := &table{queue: []*entry{holder}}
			for _, e := range test.joining {
				table.join(e)
			}
			assert.Equal(t, test.want, ids(table.queue))
		})
	}
}

// A wrong clock, or a table that somebody changed, lets nobody pass for long and makes nobody wait forever.
func TestWrongClockGivesNoAdvantage(t *testing.T) {
	for _, wrong := range []int64{1, math.MaxInt64, math.MinInt64, math.MaxInt64 - lateness} {
		victim := asked("victim", 0)
		table := &table{queue: []*entry{asked("victim", 0)}}
		table.queue[0].asked = wrong
		table.join(victim)
		assert.Same(t, victim, table.queue[1], "the waiter with a time of %d stays first", wrong)
	}
	// A client whose clock is 50 ms behind passes for 50 ms and no longer, however often it asks.
	table := &table{queue: []*entry{asked("victim", 0)}}
	passed := 0
	for at := range int64(1000) { // a request each millisecond
		before := slices.Index(ids(table.queue), "victim")
		table.join(asked(strconv.FormatInt(at, 10), at*1000-50_000))
		passed += slices.Index(ids(table.queue), "victim") - before
	}
	assert.Equal(t, 50, passed)
}

func TestSharedRequestsPassEachOther(t *testing.T) {
	table := &table{}
	second, first := newEntry("2", "2", granted, lock.Shared, "a"), newEntry("1", "1", waiting, lock.Shared, "a")
	second.asked, first.asked = 2, 1
	writer := asked("w", 0)
	writer.asked = 3
	for _, e := range []*entry{second, writer, first} {
		table.join(e)
	}
	assert.Equal(t, []string{"2", "1", "w"}, ids(table.queue))
	assert.Equal(t, []string{"1"}, ids(table.next()))
}

func TestStealLeavesOtherNames(t *testing.T) {
	both, one := newEntry("both", "1", granted, lock.Exclusive, "a", "b"), newEntry("w", "2", waiting, lock.Exclusive, "a")
	both.lease = &lease{}
	table := &table{queue: []*entry{both, one}}
	assert.Equal(t, []string{"both"}, ids(table.steal(newEntry("stealer", "3", waiting, lock.Exclusive, "a"))))
	assert.Equal(t, []string{"stealer", "both", "w"}, ids(table.queue))
	assert.Equal(t, []lock.Want{{Name: "b", Mode: lock.Exclusive}}, both.wants)
	assert.Nil(t, both.lease)
	assert.Equal(t, []string{"stealer"}, ids(table.steal(newEntry("second", "3", waiting, lock.Exclusive, "a"))))
	assert.Equal(t, []string{"second", "both", "w"}, ids(table.queue))
}

func TestTableAgreesWithWhatItsClientKnows(t *testing.T) {
	mine := newEntry("mine", "1", granted, lock.Exclusive, "a")
	own := []*entry{newEntry("1", "1", present, lock.Shared), mine}
	whole := &table{queue: []*entry{own[0].clone(), newEntry("unknown", "1", granted, lock.Exclusive, "b"), newEntry("other", "2", waiting, lock.Shared, "a")}}
	assert.False(t, whole.lacks(own), "a granted entry may be taken away")
	assert.True(t, whole.agree("1", own))
	assert.Equal(t, []string{"1", "other"}, ids(whole.queue), "a lost entry does not come back")
	assert.True(t, whole.knows("2"))
	assert.False(t, whole.knows("3"))

	replaced := &table{queue: []*entry{newEntry("foreign", "3", granted, lock.Exclusive, "a")}}
	assert.True(t, replaced.lacks(own))
	replaced.recovery = &recovery{}
	assert.True(t, replaced.agree("1", own))
	assert.Equal(t, []string{"mine", "1"}, ids(replaced.queue), "a client that was not seen yields")
	assert.NotSame(t, mine, replaced.find("mine"))

	taken := &table{recovery: &recovery{seen: []string{"3"}}, queue: []*entry{newEntry("theirs", "3", granted, lock.Exclusive, "a")}}
	taken.agree("1", own)
	assert.Equal(t, []string{"theirs", "1"}, ids(taken.queue))
}

// The file was lost, and the clock is behind the tokens. A record that its client puts back has a lower token than what comes later.
func TestTokensRiseAboveRestoredRecords(t *testing.T) {
	now := time.UnixMilli(1763687000000)
	record := &entry{id: "r", client: "7", state: recorded, lease: &lease{Record: lock.Record{Resource: "r", LeaseID: "1", Token: now.UnixMilli() + 1000}}}
	lost := &table{recovery: &recovery{}}
	lost.agree("7", []*entry{record})
	e, _ := lost.claim("2", "2", lock.Record{Resource: "r", LeaseID: "2"}, now, false)
	assert.Greater(t, e.lease.Token, record.lease.Token)
}

func TestTokensRise(t *testing.T) {
	now := time.UnixMilli(1763687000000)
	table := &table{}
	last := int64(0)
	for i := range 5 {
		// The clock stops, and is set back.
		at := now.Add(-time.Duration(i/2) * time.Hour)
		e, _ := table.claim("1", fmt.Sprint(i), lock.Record{Resource: "r", LeaseID: fmt.Sprint(i)}, at, false)
		assert.Greater(t, e.lease.Token, last)
		last = e.lease.Token
	}
	assert.GreaterOrEqual(t, last, now.UnixMilli(), "the token is not below the wall time, in case the file was lost")
}

func TestClaimJoinsGrantedEntry(t *testing.T) {
	held := newEntry("held", "1", granted, lock.Exclusive, "r")
	table := &table{queue: []*entry{newEntry("other", "2", granted, lock.Exclusive, "q"), held}}
	now := time.Now()
	r := lock.Record{Resource: "r", LeaseID: "l", AcquiredAt: now, ExpiresAt: now.Add(time.Second)}
	e, _ := table.claim("1", "new", r, now, false)
	assert.Same(t, held, e)
	assert.Equal(t, time.Second, e.lease.ttl)
	assert.Same(t, held, table.leased("l"))
	assert.Equal(t, []string{"held"}, ids(expired(table.queue, func(*lease) bool { return true })))
	table.release(held)
	assert.Nil(t, table.leased("l"))

	e, _ = table.claim("1", "alone", r, now, false)
	assert.Equal(t, recorded, e.state)
	_, replaced := table.claim("2", "stealer", lock.Record{Resource: "r", LeaseID: "m"}, now, true)
	assert.Equal(t, []string{"alone"}, ids(replaced))
	table.unlease(table.leased("m"))
	assert.Equal(t, []string{"other"}, ids(table.queue))

	later := now.Add(time.Hour).UnixMilli()
	e, _ = table.claim("1", "after", lock.Record{Resource: "r", LeaseID: "n", Token: later}, now, false)
	assert.Equal(t, later+1, e.lease.Token, "a store knows a later token")
}

// A client that steals and was granted the name here replaces the record of a lease whose lock another mechanism keeps,
// but no other entry of its own.
func TestStealWithGrantReplacesRecord(t *testing.T) {
	now := time.Now()
	table := &table{}
	table.claim("web", "stolen", lock.Record{Resource: "r", LeaseID: "l"}, now, false)
	table.claim("file", "own", lock.Record{Resource: "r", LeaseID: "m"}, now, false)
	held := newEntry("held", "file", granted, lock.Exclusive, "r")
	table.queue = append(table.queue, held)
	e, replaced := table.claim("file", "unused", lock.Record{Resource: "r", LeaseID: "n"}, now, true)
	assert.Same(t, held, e)
	assert.Equal(t, []string{"stolen"}, ids(replaced))
	assert.Equal(t, []string{"own", "held"}, ids(table.queue))
}

// A client holds a place of the project, and the whole project shared, with a lease that expires first. Others take over the lock of that
// lease alone.
func TestExpiredLeaseOfTheProjectLeavesPlaces(t *testing.T) {
	place, project := newEntry("place", "1", granted, lock.Shared, "r", "r//a"), newEntry("project", "1", granted, lock.Shared, "r")
	place.wants[1].Mode = lock.Exclusive
	table := &table{queue: []*entry{place, project}}
	now := time.Now()
	table.claim("1", "new", lock.Record{Resource: "r", LeaseID: "l", AcquiredAt: now, ExpiresAt: now.Add(time.Second)}, now, false)
	over := func(*lease) bool { return true }
	assert.Empty(t, expired(table.blockers(newEntry("next", "2", waiting, lock.Exclusive, "r//a")), over))
	assert.Equal(t, []string{"project"}, ids(expired(table.blockers(newEntry("next", "2", waiting, lock.Exclusive, "r")), over)))
	table.release(place)
	assert.Same(t, project, table.leased("l"))
	table.release(project)
	assert.Nil(t, table.leased("l"))
}

// A client has been granted a name twice. A lease that was taken for the first grant outlives it.
func TestLeaseOutlivesItsLock(t *testing.T) {
	first, second := newEntry("first", "1", granted, lock.Shared, "r"), newEntry("second", "1", granted, lock.Shared, "r")
	table := &table{queue: []*entry{first, second}}
	now := time.Now()
	table.claim("1", "new", lock.Record{Resource: "r", LeaseID: "l", AcquiredAt: now, ExpiresAt: now.Add(time.Second)}, now, false)
	table.release(first)
	assert.Same(t, second, table.leased("l"))
	table.release(second)
	assert.Nil(t, table.leased("l"))
}

// For any order of client operations, no two conflicting requests are granted, and a waiter is granted its request once
// the blocking entries are gone.
func TestRandomSequences(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 1))
		table := &table{}
		for step := range 60 {
			client := fmt.Sprint(random.IntN(4))
			switch random.IntN(6) {
			case 0, 1, 2:
				mode := []lock.Mode{lock.Shared, lock.Exclusive}[random.IntN(2)]
				names := []string{"a", "b", "c"}[random.IntN(2):][:1+random.IntN(2)]
				table.queue = append(table.queue, newEntry(fmt.Sprint(step), client, waiting, mode, names...))
			case 3:
				table.steal(newEntry(fmt.Sprint(step), client, waiting, lock.Exclusive, "a"))
			default:
				if len(table.queue) > 0 {
					e := table.queue[random.IntN(len(table.queue))]
					if e.state == granted {
						table.release(e)
					} else {
						table.remove(e)
					}
				}
			}
			for next := table.next(); len(next) > 0; next = table.next() {
				for _, e := range table.queue {
					require.Equal(t, e.state == waiting && len(table.blockers(e)) == 0, slices.Contains(next, e), "seed %d", seed)
				}
				next[0].state = granted
			}
			for i, e := range table.queue {
				for _, other := range table.queue[:i] {
					require.False(t, e.state == granted && other.state == granted && conflict(e, other), "seed %d", seed)
				}
				require.True(t, e.state == granted || len(table.blockers(e)) > 0, "seed %d: an entry waits without a blocker", seed)
			}
			read, err := decode(table.encode())
			require.NoError(t, err)
			require.Equal(t, ids(table.queue), ids(read.queue))
		}
		for len(table.queue) > 0 { // all clients leave in the end
			i := slices.IndexFunc(table.queue, func(e *entry) bool { return e.state == granted })
			require.GreaterOrEqual(t, i, 0)
			table.release(table.queue[i])
			for _, e := range table.next() {
				if len(table.blockers(e)) == 0 {
					e.state = granted
				}
			}
		}
	}
}

// A query shows the entries that its client had when it asked, even if the table has changed since.
func TestRestoreShowsEarlierEntries(t *testing.T) {
	before := &table{queue: []*entry{
		newEntry("mine", "me", granted, lock.Exclusive, "a"),
		newEntry("theirs", "1", granted, lock.Exclusive, "b"),
		newEntry("waits", "me", waiting, lock.Exclusive, "b"),
		newEntry("next", "2", waiting, lock.Exclusive, "a"),
	}}
	later := &table{queue: []*entry{
		newEntry("next", "2", granted, lock.Exclusive, "a"), // after a release of mine
		newEntry("new", "2", waiting, lock.Exclusive, "b"),
		newEntry("asked later", "me", granted, lock.Exclusive, "c"),
	}}
	later.restore("me", before)
	assert.Equal(t, []string{"mine", "waits", "next", "new"}, ids(later.queue))
	assert.Equal(t, waiting, later.find("next").state, "it waits for mine")
	assert.Equal(t, []string{"waits"}, ids(later.next()), "theirs was released")
}

// A claim may fail after it was written, and its acquisition tries again later.
func TestClaimingAgainGivesAHigherToken(t *testing.T) {
	now := time.UnixMilli(1000)
	r := lock.Record{Resource: "r", LeaseID: "retried", AcquiredAt: now, ExpiresAt: now.Add(time.Second)}
	table := &table{}
	first, _ := table.claim("1", "left", r, now, false)
	other, _ := table.claim("2", "other", lock.Record{Resource: "r", LeaseID: "between"}, now, false)
	require.Greater(t, other.lease.Token, first.lease.Token)

	own := newEntry("own", "1", granted, lock.Exclusive, "r")
	table.queue = append(table.queue, own)
	r.AcquiredAt, r.ExpiresAt = now.Add(time.Minute), now.Add(time.Hour)
	again, _ := table.claim("1", "unused", r, now, false)
	assert.Greater(t, again.lease.Token, other.lease.Token)
	assert.Same(t, own, again, "the record is part of the entry that was granted")
	assert.Equal(t, r.ExpiresAt, again.lease.ExpiresAt)
	assert.Equal(t, []string{"other", "own"}, ids(table.queue), "the first attempt leaves nothing")
}
