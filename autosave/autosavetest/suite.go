package autosavetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
)

// Storage is a place from which the suite takes stores. Functions that the place does not support are nil; their tests
// are skipped.
type Storage struct {
	// Open returns the store of one page.
	Open func() Page
	// Corrupt damages the content of a generation.
	Corrupt func(id string)
	// Evict empties the storage.
	Evict func()
	// Forget loses the indexes: their folder is removed or, if cut is set, each of them is truncated to nothing.
	Forget func(cut bool)
}

// Page is the store of one page.
type Page struct {
	autosave.Store
	// Break makes the n-th operation from now on fail, as [Steps.Break] does. Ops returns the number of operations so
	// far.
	Break func(n int, f Fault, dies bool)
	Ops   func() int
	// Mend ends the faults that Break has begun.
	Mend func()
}

// RunStore runs the suite that every Store must pass. open returns an empty storage.
func RunStore(t *testing.T, open func(t *testing.T) Storage) {
	for _, c := range []struct {
		name string
		run  func(*harness)
	}{
		{"nothing is there at first", testEmpty},
		{"a committed content reads back", testCommit},
		{"every page sees the same", testPages},
		{"the current generation comes first", testOrder},
		{"ids are times and tokens", testIDs},
		{"phases are reported in order", testProgress},
		{"a lower token is refused", testStale},
		{"a fence refuses before anything is committed", testFence},
		{"the successor has what was acknowledged", testTakeover},
		{"more generations than the maximum remove the oldest", testCount},
		{"more bytes than the maximum remove the oldest generations", testBytes},
		{"the generations that are kept are spread over time", testSpread},
		{"the last generation is kept, however large it is", testLarge},
		{"a pinned generation is kept", testPin},
		{"a pin is refused like a commit", testPinRefused},
		{"a pin fails or is killed at any step", testPinFaults},
		{"the successor has what was pinned", testPinTakeover},
		{"a commit aside leaves the current one", testAside},
		{"damage is found and named", testCorrupted},
		{"an emptied storage is reported and filled again", testEvicted},
		{"killed at any step it reads back whole", testKilled},
		{"failed at any step it reads back whole", testFailed},
		{"lost indexes are made again from the generations", testForgotten},
		{"after a loss of the index, the current generation is still current", testForgottenAside},
		{"a torn generation does not count as a generation", testTornContent},
		{"any content", testContent},
		{"a generation has its draft and who saved it", testDescribed},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &harness{T: t, Storage: open(t), open: open, at: time.UnixMilli(1_700_000_000_000)}
			c.run(h)
		})
	}
}

type harness struct {
	*testing.T
	Storage
	open func(*testing.T) Storage
	at   time.Time
}

func (h *harness) fresh() {
	h.Storage = h.open(h.T)
}

func (h *harness) commit(content string, token int64) autosave.Commit {
	h.at = h.at.Add(time.Second)
	return autosave.Commit{Content: autosave.Bytes(content), Token: token, SavedAt: h.at}
}

func (h *harness) save(s autosave.Store, content string, token int64) autosave.Generation {
	h.Helper()
	g, err := s.Commit(h.Context(), h.commit(content, token))
	require.NoError(h, err)
	return g
}

func (h *harness) list(s autosave.Store) []autosave.Generation {
	h.Helper()
	all, err := s.List(h.Context())
	require.NoError(h, err)
	return all
}

// holds fails unless the store has exactly these contents, the current one first.
func (h *harness) holds(s autosave.Store, want ...string) {
	h.Helper()
	got := []string{}
	for i, g := range h.list(s) {
		assert.Equal(h, i == 0, g.Current, "exactly the first one is current")
		content, err := s.Read(h.Context(), g.ID)
		require.NoError(h, err)
		sum, _ := SHA256(h.Context(), content)
		assert.Equal(h, sum, g.SHA256)
		assert.Equal(h, int64(len(content)), g.Bytes)
		got = append(got, string(content))
	}
	require.Equal(h, strings.Join(want, "|"), strings.Join(got, "|"))
	if len(want) > 0 {
		content, err := s.Read(h.Context(), autosave.Current)
		require.NoError(h, err)
		require.Equal(h, want[0], string(content))
	}
}

func testEmpty(h *harness) {
	s := h.Open()
	assert.Empty(h, h.list(s))
	for _, id := range []string{autosave.Current, "1-1", "", "no such thing", "../index"} {
		_, err := s.Read(h.Context(), id)
		require.ErrorIs(h, err, autosave.ErrNotFound, id)
	}
	require.NoError(h, s.Fence(h.Context(), 1))
	assert.Empty(h, h.list(s))
}

func testCommit(h *harness) {
	s := h.Open()
	g := h.save(s, "one", 1)
	sum, _ := SHA256(h.Context(), []byte("one"))
	assert.Equal(h, autosave.Generation{ID: g.ID, SavedAt: h.at, Bytes: 3, Token: 1, SHA256: sum, Current: true}, g)
	assert.Equal(h, []autosave.Generation{g}, h.list(s))
	h.holds(s, "one")
}

func testPages(h *harness) {
	a, b := h.Open(), h.Open()
	g := h.save(a, "one", 1)
	assert.Equal(h, []autosave.Generation{g}, h.list(b))
	h.holds(b, "one")
	h.save(b, "two", 2)
	h.holds(a, "two", "one")
}

func testOrder(h *harness) {
	s := h.Open()
	h.save(s, "one", 1)
	h.at = h.at.Add(-time.Hour) // a clock that was set back
	h.save(s, "two", 1)
	h.save(s, "three", 2)
	h.at = h.at.Add(-time.Hour)
	h.save(s, "four", 2)
	h.holds(s, "four", "three", "two", "one")
}

func testIDs(h *harness) {
	s := h.Open()
	seen := map[string]bool{}
	for i := range 8 {
		h.at = time.UnixMilli(1_700_000_000_000 + int64(max(0, i-4)*60_000)) // a clock that stops, then runs
		g := h.save(s, "x", 7)
		assert.True(h, strings.HasSuffix(g.ID, "-7"), g.ID)
		assert.False(h, g.SavedAt.Before(h.at), "saved at %v", g.SavedAt)
		assert.False(h, seen[g.ID], "an id is used twice")
		seen[g.ID] = true
	}
}

func testProgress(h *harness) {
	s := h.Open()
	var phases []autosave.Phase
	c := h.commit("one", 1)
	c.Progress = func(p autosave.Phase) { phases = append(phases, p) }
	_, err := s.Commit(h.Context(), c)
	require.NoError(h, err)
	assert.Equal(h, []autosave.Phase{autosave.PhaseWriting, autosave.PhaseIndex, autosave.PhaseGC}, phases)
}

func testStale(h *harness) {
	old, successor := h.Open(), h.Open()
	h.save(old, "one", 1)
	h.save(successor, "two", 2)
	_, err := old.Commit(h.Context(), h.commit("late", 1))
	require.ErrorIs(h, err, autosave.ErrStaleToken)
	require.ErrorIs(h, old.Fence(h.Context(), 1), autosave.ErrStaleToken)
	_, err = h.Open().Commit(h.Context(), h.commit("late", 1))
	require.ErrorIs(h, err, autosave.ErrStaleToken, "from another page")
	h.save(successor, "three", 2)
	h.holds(successor, "three", "two", "one")
}

func testFence(h *harness) {
	old, successor := h.Open(), h.Open()
	h.save(old, "one", 1)
	require.NoError(h, successor.Fence(h.Context(), 5))
	require.NoError(h, successor.Fence(h.Context(), 5), "again")
	_, err := old.Commit(h.Context(), h.commit("late", 1))
	require.ErrorIs(h, err, autosave.ErrStaleToken)
	h.holds(successor, "one")
	h.save(successor, "two", 5)
	h.holds(old, "two", "one")
}

// At any moment, the next editor sees after its fence every content that was acknowledged to the former editor.
// Unacknowledged content may exist or not.
func testTakeover(h *harness) {
	for round := range 25 {
		h.fresh()
		old, successor := h.Open(), h.Open()
		h.save(old, "begin", 1)
		acknowledged := make(chan string, 1)
		go func() {
			last := "begin"
			for n := range 1000 {
				content := fmt.Sprint(n)
				if _, err := old.Commit(context.Background(), autosave.Commit{Content: autosave.Bytes(content), Token: 1, SavedAt: h.at}); err != nil {
					assert.ErrorIs(h, err, autosave.ErrStaleToken)
					break
				}
				last = content
			}
			acknowledged <- last
		}()
		time.Sleep(time.Duration(round) * 40 * time.Microsecond)
		require.NoError(h, successor.Fence(h.Context(), 2))
		seen := h.list(successor)
		last := <-acknowledged
		require.Equal(h, seen, h.list(successor), "the fence lets nothing pass")
		found := false
		for _, g := range seen {
			content, err := successor.Read(h.Context(), g.ID)
			require.NoError(h, err)
			found = found || string(content) == last
		}
		require.True(h, found, "acknowledged and lost: %s", last)
	}
}

func testCount(h *harness) {
	s := h.Open()
	for n := range 30 {
		c := h.commit(fmt.Sprint(n), 1)
		c.Limits = autosave.Limits{MaxGenerations: 3, Keep: autosave.KeepLatest}
		_, err := s.Commit(h.Context(), c)
		require.NoError(h, err)
		assert.Len(h, h.list(s), min(n+1, 3))
	}
	h.holds(s, "29", "28", "27")
	for n := range 30 {
		h.save(s, fmt.Sprint(n), 1)
	}
	assert.Len(h, h.list(s), autosave.DefaultMaxGenerations)
}

func testBytes(h *harness) {
	s := h.Open()
	for n := range 10 {
		c := h.commit(strings.Repeat(fmt.Sprint(n), 100), 1)
		c.Limits.MaxBytes = 399
		_, err := s.Commit(h.Context(), c)
		require.NoError(h, err)
		assert.Len(h, h.list(s), min(n+1, 3))
	}
}

func testSpread(h *harness) {
	s := h.Open()
	begin := h.at
	for n := range 100 {
		c := h.commit(fmt.Sprint(n), 1)
		c.Limits.MaxGenerations = 6
		_, err := s.Commit(h.Context(), c)
		require.NoError(h, err)
	}
	all := h.list(s)
	require.Len(h, all, 6)
	assert.Equal(h, h.at, all[0].SavedAt, "the newest")
	assert.Equal(h, h.at.Add(-time.Second), all[1].SavedAt, "the one before")
	assert.Equal(h, begin.Add(time.Second), all[5].SavedAt, "the first")
	for i := range 4 {
		assert.Greater(h, all[i+1].SavedAt.Sub(all[i+2].SavedAt), all[i].SavedAt.Sub(all[i+1].SavedAt), "the distances grow with the age")
	}
}

func testLarge(h *harness) {
	s := h.Open()
	h.save(s, "small", 1)
	c := h.commit(strings.Repeat("x", 1000), 1)
	c.Limits = autosave.Limits{MaxBytes: 10, MaxGenerations: 5}
	_, err := s.Commit(h.Context(), c)
	require.NoError(h, err)
	h.holds(s, strings.Repeat("x", 1000))
}

func testCorrupted(h *harness) {
	if h.Corrupt == nil {
		h.Skip("this storage cannot be damaged")
	}
	s := h.Open()
	one, two, three := h.save(s, "one", 1), h.save(s, "two", 1), h.save(s, "three", 1)
	h.Corrupt(two.ID)
	_, err := s.Read(h.Context(), two.ID)
	require.ErrorIs(h, err, autosave.ErrCorrupted)
	var failure *autosave.Error
	require.True(h, errors.As(err, &failure))
	assert.Equal(h, two.ID, failure.Resource)
	for id, want := range map[string]string{one.ID: "one", three.ID: "three", autosave.Current: "three"} {
		content, err := s.Read(h.Context(), id)
		require.NoError(h, err)
		assert.Equal(h, want, string(content))
	}
	h.Corrupt(three.ID)
	_, err = s.Read(h.Context(), autosave.Current)
	require.ErrorIs(h, err, autosave.ErrCorrupted)
	h.save(s, "four", 1)
	assert.Len(h, h.list(s), 4)
}

func testEvicted(h *harness) {
	if h.Evict == nil {
		h.Skip("this storage cannot be emptied")
	}
	s := h.Open()
	h.save(s, "one", 1)
	h.Evict()
	assert.Empty(h, h.list(s))
	_, err := s.Commit(h.Context(), h.commit("two", 1))
	require.ErrorIs(h, err, autosave.ErrEvicted)
	h.save(s, "two", 1)
	h.holds(s, "two")
}

func testContent(h *harness) {
	s := h.Open()
	all := []string{"", "\x00\xff\xfe", "日本語 🦀 e\u0301 \u202e", strings.Repeat("0123456789abcdef", 20<<20/16)}
	for _, content := range all {
		h.save(s, content, 1)
		got, err := s.Read(h.Context(), autosave.Current)
		require.NoError(h, err)
		require.True(h, content == string(got))
	}
}

// testDescribed commits descriptions of snapshots that contain text which could break an index.
func testDescribed(h *harness) {
	s := h.Open()
	nasty := `Ann "},{"id":"9-9" \ \u0022 ` + "\n\x00 日本語"
	c := h.commit("one", 1)
	c.Draft, c.Number, c.OwnerName = "d1", 7, nasty
	one, err := s.Commit(h.Context(), c)
	require.NoError(h, err)
	c = h.commit("", 1)
	c.Take = func(context.Context) (autosave.Content, error) {
		return autosave.Numbered{Content: autosave.Bytes("two"), Draft: "d2", Number: 8}, nil
	}
	two, err := s.Commit(h.Context(), c)
	require.NoError(h, err)
	for _, page := range []Page{s, h.Open()} {
		all := h.list(page)
		require.Len(h, all, 2)
		assert.Equal(h, two, all[0])
		one.Current = false
		assert.Equal(h, one, all[1])
	}
	assert.Equal(h, []any{"d1", int64(7), nasty}, []any{one.Draft, one.Number, one.OwnerName})
	assert.Equal(h, []any{"d2", int64(8), ""}, []any{two.Draft, two.Number, two.OwnerName})
	h.holds(s, "two", "one")
	require.NoError(h, h.Open().Fence(h.Context(), 2))
	assert.Equal(h, []autosave.Generation{two, one}, h.list(h.Open()), "the next editor writes the index again")
}
