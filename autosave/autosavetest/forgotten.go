package autosavetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
)

// testForgotten loses all indexes while the history is whole.
func testForgotten(h *harness) {
	if h.Forget == nil {
		h.Skip("this storage has no indexes that could be lost")
	}
	for _, cut := range []bool{false, true} {
		for _, successor := range []bool{false, true} {
			h.fresh()
			s := h.Open()
			h.save(s, "one", 1)
			h.save(s, "", 1)
			s = h.Open()
			h.at = h.at.Add(-time.Hour) // a clock that was set back
			c := h.commit("three", 3)
			c.Draft, c.Number, c.OwnerName = "d1", 7, `Ann "`+"\n日本語"
			_, err := s.Commit(h.Context(), c)
			require.NoError(h, err)
			before := h.list(s)
			h.Forget(cut)
			assert.Equal(h, before, h.list(h.Open()), "with all that the index had")
			h.holds(h.Open(), "three", "", "one")
			next, token := s, int64(3)
			if successor {
				next, token = h.Open(), 4
				require.NoError(h, next.Fence(h.Context(), token))
				h.holds(next, "three", "", "one")
			}
			_, err = next.Commit(h.Context(), h.commit("four", token))
			if errors.Is(err, autosave.ErrEvicted) {
				_, err = next.Commit(h.Context(), h.commit("four", token))
			}
			require.NoError(h, err)
			h.holds(h.Open(), "four", "three", "", "one")
			h.save(next, "five", token)
			h.holds(h.Open(), "five", "four", "three", "", "one")
		}
	}
}

// testTornContent kills a page while it writes the content of a generation, then loses the
// indexes.
func testTornContent(h *harness) {
	if h.Forget == nil || h.Open().Break == nil {
		h.Skip("this storage has no indexes that could be lost, or cannot be made to fail")
	}
	for step := range 6 {
		for _, cut := range []bool{false, true} {
			h.fresh()
			s := h.Open()
			h.save(s, "one", 1)
			h.save(s, "two", 1)
			s = h.Open()
			require.NoError(h, s.Fence(h.Context(), 2))
			s.Break(step, Torn, true)
			_, err := s.Commit(h.Context(), h.commit(strings.Repeat("three", 1000), 2))
			h.Forget(cut)
			all := h.list(h.Open())
			require.NoError(h, h.Open().Fence(h.Context(), 3))
			assert.Equal(h, all, h.list(h.Open()), "it is the same to read and to edit")
			want := []string{"two", "one"}
			if err == nil || len(all) == 3 { // its content was whole
				want = []string{strings.Repeat("three", 1000), "two", "one"}
			}
			h.holds(h.Open(), want...)
		}
	}
}

// testForgottenAside loses all indexes after a generation was committed beside the current one.
func testForgottenAside(h *harness) {
	if h.Forget == nil {
		h.Skip("this storage has no indexes that could be lost")
	}
	s := h.Open()
	h.save(s, "one", 1)
	h.save(s, "two", 1)
	for token := range int64(2) {
		h.at = h.at.Add(-time.Hour) // a clock that was set back
		c := h.commit(fmt.Sprint("aside ", token), token+1)
		c.Aside = true
		_, err := h.Open().Commit(h.Context(), c)
		require.NoError(h, err)
	}
	h.holds(s, "two", "aside 1", "aside 0", "one")
	h.Forget(false)
	h.holds(h.Open(), "two", "aside 1", "aside 0", "one")
	require.NoError(h, h.Open().Fence(h.Context(), 3))
	h.holds(h.Open(), "two", "aside 1", "aside 0", "one")
}
