package autosave_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/lock"
)

// lateStore is a store that answers late: something happens before its next answer.
type lateStore struct {
	autosave.Store
	meanwhile func()
}

func (s *lateStore) pass() {
	if f := s.meanwhile; f != nil {
		s.meanwhile = nil
		f()
	}
}

func (s *lateStore) List(ctx context.Context) ([]autosave.Generation, error) {
	all, err := s.Store.List(ctx)
	s.pass()
	return all, err
}

func (s *lateStore) Read(ctx context.Context, id string) ([]byte, error) {
	text, err := s.Store.Read(ctx, id)
	s.pass()
	return text, err
}

// A user decides what the content shall be. Before the store has answered, another page edits, saves and closes, and the
// first page edits again. The decision does not replace a content that the user did not know.
func TestDecisionEndsWithTheLease(t *testing.T) {
	for name, decide := range map[string]func(context.Context, *writer) error{
		"draft": func(ctx context.Context, c *writer) error { return c.ResolveDraft(ctx, "a-1", autosave.AsContent) },
		"generation": func(ctx context.Context, c *writer) error {
			_, err := c.Restore(ctx, autosave.Current)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				w.dispute(storage)
				c := w.author("c", storage)
				store := &lateStore{Store: c.store}
				c.store = store
				c.start()
				store.meanwhile = func() {
					m := w.manager("stealer")
					lease, err := m.Acquire(w.Context(), lock.AcquireOptions{Steal: true})
					require.NoError(w, err)
					_, err = w.disk.Page().Commit(w.Context(), autosave.Commit{Content: autosave.Bytes("one, theirs, later"), Token: lease.Token, SavedAt: time.Now()})
					require.NoError(w, err)
					require.NoError(w, lease.Release(w.Context()))
					time.Sleep(time.Second)
					assert.False(w, c.ReadOnly())
					assert.Equal(w, "one, theirs, later", c.shows())
				}
				require.ErrorIs(t, decide(t.Context(), c), autosave.ErrReadOnly)
				assert.Nil(t, store.meanwhile)
				w.sleep(time.Minute)
				assert.Equal(t, "one, theirs, later", w.saved())
				assert.Equal(t, "one, theirs, later", c.shows())
				assert.Equal(t, []string{"one, mine"}, c.texts(), "the draft waits")

				require.NoError(t, decide(t.Context(), c), "the user knows the content now")
			})
		})
	}
}

// A page that waits for its turn loses the lock again while it merges a draft. It has not edited since it became read-only, so it is not
// informed of that again.
func TestLockLostDuringAMerge(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.dispute(storage)
		first := w.stealer()
		b := w.author("b", storage)
		b.config.Merge = func(ctx context.Context, _ autosave.Conflict) (autosave.Content, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		b.start()
		require.NoError(t, first.Release(t.Context()))
		w.sleep(time.Second)
		last, err := w.manager("last").Acquire(t.Context(), lock.AcquireOptions{Steal: true})
		require.NoError(t, err)
		w.sleep(time.Second)
		assert.Equal(t, 1, b.count(autosave.EventReadonly))
		assert.NotNil(t, b.State().Holder)
		require.NoError(t, last.Release(t.Context()))
		w.sleep(time.Minute)
		assert.False(t, b.ReadOnly())
		assert.Len(t, b.disputes(), 1)
	})
}
