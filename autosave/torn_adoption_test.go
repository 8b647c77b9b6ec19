package autosave_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// Writes fail while a page makes one of two drafts the content: once, for a while, or until the user has typed. The words of each draft
// become part of the content, or the draft waits: no text that was typed without them replaces them.
func TestWriteFailsDuringAnAdoption(t *testing.T) {
	for _, f := range autosavetest.Faults {
		for step := range 40 {
			for _, lasts := range []int{1, 5, 9, 1000} {
				drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
					w.crashed(storage)
					all, err := w.disk.Page().List(t.Context())
					require.NoError(t, err)
					other := storage.Page()
					other.Journal(autosave.Draft{ID: "other", Number: 1, At: time.Now().Add(time.Second), Base: all[0].ID}, []byte("saved, second"))
					other.End()
					b := w.author("b", storage)
					var ops atomic.Int64
					b.files.Before = func(operation string) {
						if n := int(ops.Add(1)); n == step+1 || n > step && n <= step+lasts && strings.HasPrefix(operation, "write") {
							b.files.Break(0, f, false)
						}
					}
					b.start()
					w.sleep(time.Minute)
					b.types("!")
					w.sleep(time.Minute)
					ops.Store(2000)
					w.sleep(time.Minute)
					assert.NoError(t, b.State().LastErr)
					require.NoError(t, b.Dispose(t.Context()))
					c := w.author("c", storage).start()
					kept := append(c.texts(), c.shows())
					for _, word := range []string{"journalled", "second", "!"} {
						assert.True(t, slices.ContainsFunc(kept, func(s string) bool { return strings.Contains(s, word) }), "%v at %d for %d: %q", f, step, lasts, kept)
					}
				})
			}
		}
	}
}

// The save of a merged draft fails, and the page dies in its next save, whose content lacks the draft. The next editor offers the draft: it
// does not take what is left of the failed save for an earlier generation that contains it.
func TestPageDiesAfterAFailedMerge(t *testing.T) {
	for _, first := range autosavetest.Faults {
		for _, second := range autosavetest.Faults {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				w.dispute(storage)
				b := w.author("b", storage)
				b.config.Merge = func(_ context.Context, c autosave.Conflict) (autosave.Content, error) {
					return autosave.Bytes(string(c.Theirs) + string(c.Mine)), nil
				}
				saves, before := 0, ""
				b.files.Before = func(operation string) {
					if strings.HasPrefix(operation, "write index") && strings.HasPrefix(before, "write history") {
						if saves++; saves <= 2 {
							b.files.Break(0, []autosavetest.Fault{first, second}[saves-1], saves == 2)
						}
					}
					before = operation
				}
				b.start()
				b.types("!")
				w.sleep(time.Minute)
				require.Equal(t, 2, saves)
				b.die()
				c := w.author("c", storage).start()
				kept := strings.Join(append(c.texts(), c.shows()), "|")
				for _, word := range []string{"mine", "theirs", "!"} {
					assert.Contains(t, kept, word, "%v, %v", first, second)
				}
			})
		}
	}
}
