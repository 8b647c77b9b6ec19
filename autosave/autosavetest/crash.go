package autosavetest

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
)

// tight limits make every commit remove something, so that every step occurs.
var tight = autosave.Limits{MaxGenerations: 2}

// testKilled kills the page at every operation of a commit and of the fence before it. The next page must find the
// content from before, or the committed one.
func testKilled(h *harness) {
	h.steps(func(s Page, step int, f Fault) {
		s.Break(step, f, true)
		err := h.edit(s)
		next := h.Open()
		h.whole(next, err)
		h.save(next, "next", 3)
		h.whole(next, nil)
	})
}

// testFailed makes every operation fail, and the same page tries again.
func testFailed(h *harness) {
	h.steps(func(s Page, step int, f Fault) {
		s.Break(step, f, false)
		err := h.edit(s)
		h.whole(h.Open(), err)
		if err != nil {
			require.ErrorIs(h, err, autosave.ErrWriteFailed)
			s.Mend()
			require.NoError(h, h.edit(s), "the second attempt")
			h.whole(h.Open(), nil)
		}
		c := h.commit("after", 2)
		c.Limits = tight
		_, err = s.Commit(h.Context(), c)
		require.NoError(h, err)
		assert.Len(h, h.list(h.Open()), 2)
	})
}

// steps runs the test for every operation of an edit and every fault.
func (h *harness) steps(test func(s Page, step int, f Fault)) {
	if h.Open().Break == nil {
		h.Skip("this storage cannot be made to fail")
	}
	before := h.begin()
	ops := before.Ops()
	require.NoError(h, h.edit(before))
	ops = before.Ops() - ops
	require.Greater(h, ops, 4, "an edit has more operations than that")
	for step := range ops {
		for _, f := range Faults {
			s := h.begin()
			test(s, step, f)
			if h.Failed() {
				h.Fatalf("at operation %d of %d, %v", step, ops, f)
			}
		}
	}
}

// begin returns a page of a storage in which another page has saved.
func (h *harness) begin() Page {
	h.fresh()
	first := h.Open()
	h.save(first, "older", 1)
	h.save(first, "old", 1)
	return h.Open()
}

// edit takes over from the previous page and saves.
func (h *harness) edit(s Page) error {
	if err := s.Fence(h.Context(), 2); err != nil {
		return err
	}
	c := h.commit("new", 2)
	c.Limits = tight
	_, err := s.Commit(h.Context(), c)
	return err
}

// whole fails unless every generation can be read and the current one is the last committed one: certainly so if the
// edit was acknowledged.
func (h *harness) whole(s Page, edit error) {
	h.Helper()
	all := h.list(s)
	require.NotEmpty(h, all)
	for i, g := range all {
		require.Equal(h, i == 0, g.Current)
		content, err := s.Read(h.Context(), g.ID)
		if i > 0 && err != nil {
			// Beyond the limits it may be half removed, but it is never listed first.
			require.ErrorIs(h, err, autosave.ErrCorrupted)
			h.Errorf("listed, but not there: %s", g.ID)
			continue
		}
		require.NoError(h, err)
		want := []string{"older", "old", "new", "next"}
		require.Contains(h, want, string(content))
		if i == 0 && edit == nil {
			require.NotContains(h, want[:2], string(content), "acknowledged and lost")
		}
		if i == 0 {
			require.NotEqual(h, "older", string(content))
		}
	}
}
