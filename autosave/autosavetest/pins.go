package autosavetest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
)

// names returns the names of the generations, the current one first.
func (h *harness) names(s autosave.Store) (names []string) {
	h.Helper()
	for _, g := range h.list(s) {
		names = append(names, g.Name)
	}
	return names
}

// testPin pins, goes beyond the limits, and removes the pins.
func testPin(h *harness) {
	s := h.Open()
	one, two := h.save(s, "one", 1), h.save(s, "two", 1)
	name := `before the "},{" rewrite \` + "\n"
	pinned, err := s.Pin(h.Context(), 1, one.ID, name)
	require.NoError(h, err)
	one.Name, one.Current = name, false
	assert.Equal(h, one, pinned)
	assert.Equal(h, []autosave.Generation{two, one}, h.list(h.Open()))
	current, err := s.Pin(h.Context(), 1, autosave.Current, "now")
	require.NoError(h, err)
	two.Name = "now"
	assert.Equal(h, two, current)
	for n := range 10 {
		c := h.commit(strings.Repeat(fmt.Sprint(n), 100), 1)
		c.Limits = autosave.Limits{MaxGenerations: 2, MaxBytes: 250}
		_, err := s.Commit(h.Context(), c)
		require.NoError(h, err)
	}
	h.holds(s, strings.Repeat("9", 100), strings.Repeat("8", 100), "two", "one")
	assert.Equal(h, []string{"", "", "now", name}, h.names(h.Open()))
	for _, id := range []string{one.ID, two.ID, two.ID} { // a generation without a pin can be unpinned again
		free, err := s.Pin(h.Context(), 1, id, "")
		require.NoError(h, err)
		assert.Empty(h, free.Name)
	}
	assert.Len(h, h.list(s), 4, "until the next commit")
	c := h.commit("last", 1)
	c.Limits.MaxGenerations = 1
	_, err = s.Commit(h.Context(), c)
	require.NoError(h, err)
	h.holds(h.Open(), "last")
}

// testPinRefused pins generations that do not exist, and pins under tokens that are no longer the highest.
func testPinRefused(h *harness) {
	old, successor := h.Open(), h.Open()
	_, err := old.Pin(h.Context(), 1, autosave.Current, "nothing")
	require.ErrorIs(h, err, autosave.ErrNotFound)
	g := h.save(old, "one", 1)
	for _, id := range []string{"1-1", "", "no such thing"} {
		_, err := old.Pin(h.Context(), 1, id, "x")
		require.ErrorIs(h, err, autosave.ErrNotFound)
	}
	_, err = successor.Pin(h.Context(), 5, g.ID, "of the successor")
	require.NoError(h, err, "it shuts out the one before like a commit")
	_, err = old.Pin(h.Context(), 1, g.ID, "late")
	require.ErrorIs(h, err, autosave.ErrStaleToken)
	_, err = old.Commit(h.Context(), h.commit("late", 1))
	require.ErrorIs(h, err, autosave.ErrStaleToken)
	assert.Equal(h, []string{"of the successor"}, h.names(h.Open()))
	if h.Evict != nil {
		h.Evict()
		_, err = successor.Pin(h.Context(), 5, g.ID, "gone")
		require.ErrorIs(h, err, autosave.ErrEvicted)
		assert.Empty(h, h.list(successor))
	}
}

// testPinFaults makes every operation of a pin fail, or kills the page there. Every acknowledged change exists, and
// nothing else has changed.
func testPinFaults(h *harness) {
	if h.Open().Break == nil {
		h.Skip("this storage cannot be made to fail")
	}
	pin := func(s Page) error {
		_, err := s.Pin(h.Context(), 1, h.list(h.Open())[1].ID, "pinned")
		return err
	}
	begin := func() Page {
		h.fresh()
		s := h.Open()
		h.save(s, "one", 1)
		h.save(s, "two", 1)
		return s
	}
	s := begin()
	ops := s.Ops()
	require.NoError(h, pin(s))
	ops = s.Ops() - ops
	require.Greater(h, ops, 2, "a pin has more operations than that")
	for step := range ops {
		for _, f := range Faults {
			for _, dies := range []bool{false, true} {
				s := begin()
				s.Break(step, f, dies)
				err := pin(s)
				h.holds(h.Open(), "two", "one")
				allowed := []string{"pinned"}
				if err != nil {
					allowed = append(allowed, "")
				}
				require.Contains(h, allowed, h.names(h.Open())[1])
				next, token := s, int64(1)
				if dies {
					next, token = h.Open(), 2
				} else {
					s.Mend()
				}
				require.NoError(h, func() error { _, err := next.Pin(h.Context(), token, h.list(next)[1].ID, "again"); return err }())
				h.save(next, "three", token)
				h.holds(h.Open(), "three", "two", "one")
				require.Equal(h, []string{"", "", "again"}, h.names(h.Open()), "operation %d of %d, %v", step, ops, f)
			}
		}
	}
}

// testPinTakeover pins while a successor begins: the successor has every acknowledged pin.
func testPinTakeover(h *harness) {
	for range 25 {
		h.fresh()
		old, successor := h.Open(), h.Open()
		id := h.save(old, "begin", 1).ID
		acknowledged := make(chan string)
		begun := make(chan bool, 1000)
		go func() {
			last := ""
			for n := range 1000 {
				name := fmt.Sprint(n)
				if _, err := old.Pin(h.Context(), 1, id, name); err != nil {
					assert.ErrorIs(h, err, autosave.ErrStaleToken)
					break
				}
				last = name
				begun <- true
			}
			acknowledged <- last
		}()
		<-begun
		require.NoError(h, successor.Fence(h.Context(), 2))
		seen := h.list(successor)
		last := <-acknowledged
		require.Equal(h, seen, h.list(successor), "the fence lets nothing pass")
		has, err := strconv.Atoi(seen[0].Name)
		require.NoError(h, err)
		want, err := strconv.Atoi(last)
		require.NoError(h, err)
		require.GreaterOrEqual(h, has, want, "acknowledged and lost")
	}
}
