package kv_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// A shared request is not carried out after its callers' time is over, since their next steps could come before it.
func TestASharedRequestEndsWithTheTimeOfItsCallers(t *testing.T) {
	overSlowLink(t, func(t *testing.T, s *slowLink) {
		earlier, shared := make(chan struct{}), make(chan struct{})
		s.hangs = earlier
		outcomes := s.together(t, putting("a"), putting("b"))
		s.mu.Lock()
		s.hangs = shared
		s.mu.Unlock()
		time.Sleep(30 * time.Millisecond) // patience
		require.Equal(t, 2, s.sent(), "the shared request is in flight")
		close(earlier)
		for _, o := range outcomes() {
			assert.ErrorIs(t, o.err, kv.ErrUnavailable)
		}
		close(shared)
		time.Sleep(time.Second)
		keys, err := s.Keys(t.Context(), "")
		require.NoError(t, err)
		assert.Equal(t, []string{"first"}, keys)
	})
}
