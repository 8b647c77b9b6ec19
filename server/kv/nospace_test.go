package kv_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// etcd carries out the first transaction that exceeds its quota, and reports that it has no space. No caller may learn
// that its conditions did not hold. A transaction that puts nothing is still possible in a full store.
func TestNoSpaceForASharedRequest(t *testing.T) {
	for name, carriedOut := range map[string]bool{"carried out": true, "refused": false} {
		t.Run(name, func(t *testing.T) {
			overSlowLink(t, func(t *testing.T, s *slowLink) {
				put(t, s.Store, "there", "")
				outcomes := s.together(t,
					kv.Txn{If: []kv.Cond{kv.Absent("a")}, Then: []kv.Op{kv.Put("a", nil)}},
					kv.Txn{If: []kv.Cond{kv.Exists("there")}, Then: []kv.Op{kv.Delete("there")}},
					kv.Txn{If: []kv.Cond{kv.Absent("b")}, Then: []kv.Op{kv.Read("b")}, Else: []kv.Op{kv.Delete("b")}})
				answer := func(err error) {
					s.mu.Lock()
					defer s.mu.Unlock()
					if carriedOut {
						s.after = err
					} else {
						s.refuses = err
					}
				}
				answer(rpctypes.ErrGRPCNoSpace)
				time.Sleep(7 * time.Millisecond)
				require.Equal(t, 3, s.sent(), "the shared request is in flight")
				answer(nil)
				list := outcomes()
				assert.ErrorIs(t, list[0].err, kv.ErrFull)
				assert.Equal(t, kv.Result{}, list[0].Result)
				if carriedOut {
					assert.ErrorIs(t, list[1].err, kv.ErrFull)
				} else {
					assert.NoError(t, list[1].err)
				}
				assert.Equal(t, !carriedOut, list[1].Held)
				assert.NoError(t, list[2].err)
				assert.True(t, list[2].Held)
			})
		})
	}
}
