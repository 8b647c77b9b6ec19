package kv

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A member has no space, so etcd lets no member change anything. Then that member is lost. It cannot end its alarm, so the others end it.
// Otherwise the whole cluster would refuse every lock and every heartbeat for good.
func TestTheAlarmOfALostMemberEnds(t *testing.T) {
	t.Parallel()
	first := byName(t)
	cluster := openMember(t, first)
	openMember(t, byName(t, first.ClientURL))
	lost, err := Open(t.Context(), Config{DataDir: shortDir(t), Quota: 1 << 20, Member: byName(t, first.ClientURL)})
	require.NoError(t, err)
	put := func() error {
		_, err := cluster.Commit(t.Context(), Txn{Then: []Op{Put("key", make([]byte, 1<<20))}})
		return err
	}
	require.Eventually(t, func() bool { return put() != nil }, time.Minute, time.Millisecond)
	require.ErrorIs(t, put(), ErrFull)

	require.NoError(t, lost.Close())
	assert.Eventually(t, func() bool { return put() == nil }, 20*time.Second, 100*time.Millisecond)
}
