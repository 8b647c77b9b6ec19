package content

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// right is the right of a document's lock. before runs after the fence was read and before the transaction.
func (s *Store) right(name string, token int64, before func()) Right {
	right := s.documentRight(name, Writer{Holder: "ann", Maker: "ann"}, token)
	fence := right.Fence
	right.Fence = func(ctx context.Context) ([]kv.Cond, error) {
		conditions, err := fence(ctx)
		before()
		return conditions, err
	}
	return right
}

func (s *Store) texts(t *testing.T, name string) (list []string) {
	t.Helper()
	history, err := s.History(t.Context(), name)
	require.NoError(t, err)
	for _, info := range history {
		c, err := s.Find(t.Context(), name, info.Generation)
		require.NoError(t, err)
		r, err := c.Open(t.Context())
		require.NoError(t, err)
		text := make([]byte, c.Size)
		_, err = r.Read(text)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		list = append(list, string(text))
	}
	return list
}

// One of the two locks ends just before the transaction: nothing moves.
func TestAMoveWithoutOneOfItsLocksChangesNothing(t *testing.T) {
	for _, lost := range []string{"from", "to"} {
		s, f, lock := opened(t, 5)
		tokens := map[string]int64{"from": lock("from"), "to": lock("to")}
		for _, name := range []string{"from", "to"} {
			_, err := s.save(t, name, tokens[name], name)
			require.NoError(t, err)
		}
		nothing := func() {}
		end := func() { _ = s.Locks.ReleaseAt(context.Background(), locks.Document(lost), "ann", tokens[lost]) }
		hooks := map[string]func(){"from": nothing, "to": nothing}
		hooks[lost] = end
		err := s.MoveUnder(t.Context(), "from", "to", s.right("from", tokens["from"], hooks["from"]), s.right("to", tokens["to"], hooks["to"]), nil)
		require.ErrorIs(t, err, locks.ErrStaleToken, lost)
		assert.Equal(t, []string{"from"}, s.texts(t, "from"))
		assert.Equal(t, []string{"to"}, s.texts(t, "to"))
		assert.Len(t, f.names(t), 2)
	}
}

// A save of either document just before the transaction is in the history afterwards.
func TestASaveDuringAMoveIsKept(t *testing.T) {
	for _, name := range []string{"from", "to"} {
		s, _, lock := opened(t, 5)
		from, to := lock("from"), lock("to")
		_, err := s.save(t, "from", from, "first")
		require.NoError(t, err)
		saved := false
		late := func() {
			if !saved {
				saved = true
				_, err := s.save(t, name, map[string]int64{"from": from, "to": to}[name], "late")
				require.NoError(t, err)
			}
		}
		require.NoError(t, s.MoveUnder(t.Context(), "from", "to", s.right("from", from, func() {}), s.right("to", to, late), nil))
		assert.ElementsMatch(t, []string{"first", "late"}, s.texts(t, "to"), name)
		_, _, err = s.Read(t.Context(), "from")
		require.ErrorIs(t, err, ErrNotFound)
	}
}

// Two documents have the maximum number of generations, and a limit that is lower than before drops nearly all of them. No
// transaction is too large, and the blobs of what was dropped go.
func TestAMoveOfTheLongestHistories(t *testing.T) {
	for _, keep := range []int{MaxKeep, 1} {
		s, f, lock := opened(t, MaxKeep)
		from, to := lock("from"), lock("to")
		for i := range MaxKeep {
			_, err := s.save(t, "to", to, fmt.Sprint("to", i))
			require.NoError(t, err)
			_, err = s.save(t, "from", from, fmt.Sprint("from", i))
			require.NoError(t, err)
		}
		s.Keep = keep
		require.NoError(t, s.MoveUnder(t.Context(), "from", "to", s.right("from", from, func() {}), s.right("to", to, func() {}), nil))
		texts := s.texts(t, "to")
		assert.Len(t, texts, keep)
		assert.Equal(t, fmt.Sprint("from", MaxKeep-1), texts[0])
		require.NoError(t, s.Tidy(t.Context()))
		require.NoError(t, s.Sweep(t.Context(), time.Now().Add(OrphanAge+time.Minute)))
		assert.Len(t, f.names(t), keep)
		made, err := s.KV.Count(t.Context(), MadeKey("ann", ""))
		require.NoError(t, err)
		assert.EqualValues(t, 1, made)
	}
}
