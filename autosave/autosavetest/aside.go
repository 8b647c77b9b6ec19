package autosavetest

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
)

// testAside keeps generations that were never current.
func testAside(h *harness) {
	s := h.Open()
	aside := func(content string, token int64) autosave.Generation {
		c := h.commit(content, token)
		c.Aside, c.Draft, c.Number = true, "draft", 3
		c.Limits.MaxGenerations = 3
		g, err := s.Commit(h.Context(), c)
		require.NoError(h, err)
		return g
	}
	h.save(s, "one", 1)
	h.save(s, "two", 1)
	g := aside("aside", 1)
	assert.False(h, g.Current)
	assert.Equal(h, "draft", g.Draft)
	h.holds(s, "two", "aside", "one")
	aside("again", 2)
	h.holds(s, "two", "again", "one")
	h.save(s, "three", 2)
	h.holds(h.Open(), "three", "two", "again", "one")
	c := h.commit("no room", 2)
	c.Aside, c.Limits.MaxGenerations = true, 1
	_, err := s.Commit(h.Context(), c)
	require.ErrorIs(h, err, autosave.ErrQuota, "it would be removed at once")
	h.holds(h.Open(), "three", "two", "again", "one")
	h.save(s, "four", 2)
}
