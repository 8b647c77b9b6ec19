package locks_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/sweeper"
)

const long = 10 * time.Minute // a TTL that plays no part in the test, however slow the machine is

var (
	ann = locks.Holder{ID: "ann-1", Name: "Ann"}
	bob = locks.Holder{ID: "bob-1", Name: "Bob"}
	eve = locks.Holder{ID: "eve-1", Name: "Eve"}
)

// open starts a table with its sweeper on a store.
func open(t testing.TB, s *kv.Store) *locks.Table {
	t.Helper()
	table, err := locks.Open(t.Context(), s, locks.Config{})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { sweeper.Run(ctx, table, time.Minute, slog.New(slog.DiscardHandler)) })
	t.Cleanup(func() { stop(); running.Wait(); table.Close() })
	return table
}

func want(h locks.Holder, paths ...locks.Path) locks.Request {
	return locks.Request{Paths: paths, Holder: h, TTL: long}
}

func at(parts ...string) locks.Path { return parts }

func TestDocumentHasOneHolder(t *testing.T) {
	table := open(t, kvtest.Open(t))
	p := locks.Document("r")
	first, err := table.Acquire(t.Context(), want(ann, p))
	require.NoError(t, err)
	assert.Positive(t, first.Token)

	_, err = table.Acquire(t.Context(), want(bob, p))
	var denied *locks.DeniedError
	require.ErrorAs(t, err, &denied)
	require.Len(t, denied.Holders, 1)
	assert.Equal(t, ann, denied.Holders[0].Holder)
	assert.Equal(t, first.Token, denied.Holders[0].Token)

	_, err = table.Renew(t.Context(), first.ID, bob.ID)
	assert.ErrorIs(t, err, locks.ErrNotHolder)
	assert.ErrorIs(t, table.Release(t.Context(), first.ID, bob.ID), locks.ErrNotHolder)
	until, err := table.Renew(t.Context(), first.ID, ann.ID)
	require.NoError(t, err)
	assert.False(t, until.Before(first.ExpiresAt))

	require.NoError(t, table.Release(t.Context(), first.ID, ann.ID))
	require.NoError(t, table.Release(t.Context(), first.ID, ann.ID), "a second time")
	_, err = table.Renew(t.Context(), first.ID, ann.ID)
	assert.ErrorIs(t, err, locks.ErrNotFound)

	second, err := table.Acquire(t.Context(), want(bob, p))
	require.NoError(t, err)
	assert.Greater(t, second.Token, first.Token)
	assert.NoError(t, table.Release(t.Context(), first.ID, ann.ID), "releasing an ended lease is no error, even if another owner holds the lock")
	now, _, err := table.At(t.Context(), p)
	require.NoError(t, err)
	assert.Equal(t, second.Token, now.Token)
}

func TestTheHolderMayAskAgain(t *testing.T) {
	table := open(t, kvtest.Open(t))
	r := want(ann, locks.Document("r"))
	r.Again = true
	first, err := table.Acquire(t.Context(), r)
	require.NoError(t, err)
	second, err := table.Acquire(t.Context(), r)
	require.NoError(t, err)
	assert.Equal(t, first.Token, second.Token)
	assert.Equal(t, first.LockedAt.UnixMilli(), second.LockedAt.UnixMilli())
	r.Holder = bob
	_, err = table.Acquire(t.Context(), r)
	assert.Error(t, err)
}

// Each pair of modes is tested in both orders of paths.
func TestCompatibility(t *testing.T) {
	exclusive := func(p locks.Path) locks.Request { return want(ann, p) }
	shared := func(p locks.Path) locks.Request { r := want(ann, p); r.Mode = locks.Shared; return r }
	slot := func(p locks.Path) locks.Request { r := want(ann, p); r.Slots = 2; return r }
	a, b, ab, ac, abc := at("a"), at("b"), at("a", "b"), at("a", "c"), at("a", "b", "c")
	table := open(t, kvtest.Open(t))
	for name, c := range map[string]struct {
		one, two locks.Request
		together bool
	}{
		"the same":                  {exclusive(ab), exclusive(ab), false},
		"siblings":                  {exclusive(ab), exclusive(ac), true},
		"parent and child":          {exclusive(a), exclusive(ab), false},
		"grandparent":               {exclusive(a), exclusive(abc), false},
		"different roots":           {exclusive(a), exclusive(b), true},
		"shared twice":              {shared(a), shared(a), true},
		"shared and exclusive":      {shared(a), exclusive(a), false},
		"shared above exclusive":    {shared(a), exclusive(ab), true},
		"shared below exclusive":    {exclusive(a), shared(ab), false},
		"a prefix of a name":        {exclusive(at("a")), exclusive(at("ab")), true},
		"a slash in a name":         {exclusive(at("a/b")), exclusive(ab), true},
		"the mark of a claim":       {exclusive(at("a", "!x")), exclusive(at("a", "!")), true},
		"two slots":                 {slot(a), slot(a), true},
		"slot and exclusive":        {slot(a), exclusive(a), false},
		"slot and shared":           {slot(a), shared(a), false},
		"slot and below":            {slot(a), exclusive(ab), false},
		"slot and above":            {slot(ab), exclusive(a), false},
		"slot and sibling's prefix": {slot(at("a")), exclusive(at("ab", "c")), true},
	} {
		for order, pair := range [][2]locks.Request{{c.one, c.two}, {c.two, c.one}} {
			first, err := table.Acquire(t.Context(), pair[0])
			require.NoError(t, err, name)
			pair[1].Holder = bob
			second, err := table.Acquire(t.Context(), pair[1])
			assert.Equal(t, c.together, err == nil, "%s, order %d: %v", name, order, err)
			if err == nil {
				require.NoError(t, table.Release(t.Context(), second.ID, bob.ID))
			}
			require.NoError(t, table.Release(t.Context(), first.ID, ann.ID))
		}
	}
}

func TestSlots(t *testing.T) {
	table := open(t, kvtest.Open(t))
	r := want(ann, at("pool"))
	r.Slots = 3
	var leases []locks.Lease
	for i := range 3 {
		l, err := table.Acquire(t.Context(), r)
		require.NoError(t, err)
		assert.Equal(t, i, l.Slot)
		leases = append(leases, l)
	}
	_, err := table.Acquire(t.Context(), r)
	var denied *locks.DeniedError
	require.ErrorAs(t, err, &denied)
	assert.Len(t, denied.Holders, 3)

	require.NoError(t, table.Release(t.Context(), leases[1].ID, ann.ID))
	l, err := table.Acquire(t.Context(), r)
	require.NoError(t, err)
	assert.Equal(t, 1, l.Slot, "the one that became free")
}

// A request for the whole path is denied at once, whichever slot is taken.
func TestASlotThatIsNotTheFirstDenies(t *testing.T) {
	table := open(t, kvtest.Open(t))
	r := want(ann, at("pool"))
	r.Slots = 2
	first, err := table.Acquire(t.Context(), r)
	require.NoError(t, err)
	second, err := table.Acquire(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, 1, second.Slot)
	require.NoError(t, table.Release(t.Context(), first.ID, ann.ID))

	ctx, stop := context.WithTimeout(t.Context(), second.ExpiresAt.Sub(second.LockedAt)/2)
	defer stop()
	for _, other := range []locks.Request{want(bob, at("pool")), want(bob, at("pool", "below"))} {
		_, err = table.Acquire(ctx, other)
		var denied *locks.DeniedError
		require.ErrorAs(t, err, &denied)
	}
}

func TestSlotsAreNeverGrantedTwice(t *testing.T) {
	store := kvtest.Open(t)
	tables := []*locks.Table{open(t, store), open(t, kvtest.Again(t, store))}
	var wait sync.WaitGroup
	taken := make(chan int, 40)
	for i := range 40 {
		wait.Go(func() {
			r := want(locks.Holder{ID: fmt.Sprint(i), Name: "x"}, at("pool"))
			r.Slots = 7
			if l, err := tables[i%2].Acquire(t.Context(), r); err == nil {
				taken <- l.Slot
			}
		})
	}
	wait.Wait()
	close(taken)
	seen := map[int]bool{}
	for slot := range taken {
		assert.False(t, seen[slot], "slot %d twice", slot)
		seen[slot] = true
	}
	assert.Len(t, seen, 7)
}

func TestSeveralPathsAllOrNothing(t *testing.T) {
	table := open(t, kvtest.Open(t))
	held, err := table.Acquire(t.Context(), want(bob, at("q")))
	require.NoError(t, err)
	_, err = table.Acquire(t.Context(), want(ann, at("p"), at("q"), at("r")))
	require.Error(t, err)
	p, err := table.Acquire(t.Context(), want(eve, at("p")))
	require.NoError(t, err, "nothing was taken")
	require.NoError(t, table.Release(t.Context(), p.ID, eve.ID))
	require.NoError(t, table.Release(t.Context(), held.ID, bob.ID))

	all, err := table.Acquire(t.Context(), want(ann, at("r"), at("q"), at("p"), at("q"), at("p", "below")))
	require.NoError(t, err)
	assert.Equal(t, []locks.Path{at("p"), at("q"), at("r")}, all.Paths, "in order, each once, covered ones dropped")
	for _, p := range []string{"p", "q", "r"} {
		_, err := table.Acquire(t.Context(), want(bob, at(p)))
		assert.Error(t, err, p)
	}
	_, err = table.Renew(t.Context(), all.ID, ann.ID)
	require.NoError(t, err)
	require.NoError(t, table.Release(t.Context(), all.ID, ann.ID))
	holders, _, err := table.Inspect(t.Context(), at("q"))
	require.NoError(t, err)
	assert.Empty(t, holders)
}

func TestInvalidRequests(t *testing.T) {
	table := open(t, kvtest.Open(t))
	deep := make(locks.Path, 17)
	for i := range deep {
		deep[i] = "x"
	}
	var many []locks.Path
	for i := range 16 {
		p := locks.Path{fmt.Sprint(i)}
		for range 15 {
			p = append(p, "x")
		}
		many = append(many, p)
	}
	for name, r := range map[string]locks.Request{
		"no path":         want(ann),
		"empty path":      want(ann, at()),
		"empty component": want(ann, at("a", "")),
		"too deep":        want(ann, deep),
		"too long":        want(ann, at(string(make([]byte, 129)))),
		"no time":         {Paths: []locks.Path{at("a")}, Holder: ann},
		"odd mode":        {Paths: []locks.Path{at("a")}, Holder: ann, TTL: long, Mode: "both"},
		"odd slots":       {Paths: []locks.Path{at("a")}, Holder: ann, TTL: long, Slots: -1},
		"shared slots":    {Paths: []locks.Path{at("a")}, Holder: ann, TTL: long, Slots: 2, Mode: locks.Shared},
		"too many":        want(ann, many...),
	} {
		_, err := table.Acquire(t.Context(), r)
		var invalid *locks.InvalidError
		assert.ErrorAs(t, err, &invalid, name)
	}
	for _, id := range []string{"", "x", "x.", ".", "x.!!", "x.eA", "\x00.AAAA"} {
		_, err := table.Renew(t.Context(), id, ann.ID)
		assert.ErrorIs(t, err, locks.ErrNotFound, id)
	}
}
