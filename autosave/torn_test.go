package autosave_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// A commit fails anywhere, and the page dies anywhere in its next attempts. The next editor finds a text that was
// committed whole, and at least the one that was acknowledged last.
func TestNoTornGenerationAfterTwoFaults(t *testing.T) {
	texts := []string{"the first text, which is saved", "the second text, whose save fails", "the third text, in which the page dies"}
	reached := 0
	for first := range 16 {
		for _, f := range autosavetest.Faults {
			for second := range 16 {
				for _, g := range autosavetest.Faults {
					disk := autosavetest.NewDisk()
					files := disk.Client()
					store := autosave.NewLayout(files, autosavetest.SHA256)
					acked := []string{texts[0]}
					_, err := store.Commit(t.Context(), commit(texts[0], 1))
					require.NoError(t, err)
					files.Break(first, f, false)
					if _, err = store.Commit(t.Context(), commit(texts[1], 1)); err == nil {
						acked = append(acked, texts[1])
					}
					files.Break(second, g, true)
					_, err = store.Commit(t.Context(), commit(texts[2], 1))
					if err == nil {
						acked = append(acked, texts[2])
					} else if errors.Is(err, autosavetest.ErrKilled) || errors.Is(err, autosavetest.ErrDisk) {
						reached++
					}
					next := disk.Page()
					require.NoError(t, next.Fence(t.Context(), 2))
					found := contents(t, next)
					require.Subset(t, texts, found, "a fault %v at %d, then %v at %d", f, first, g, second)
					require.Subset(t, found, acked, "a fault %v at %d, then %v at %d", f, first, g, second)
				}
			}
		}
	}
	require.Greater(t, reached, 300, "the page died in the third save")
}
