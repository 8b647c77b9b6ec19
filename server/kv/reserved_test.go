package kv

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.etcd.io/etcd/server/v3/storage"
)

// With each quota there is space between the size at which contents are refused, the size at which new locks are refused, and the one at which etcd
// refuses everything. Without it the existing locks could not be renewed or released.
func TestSpaceForTheLocksThatExist(t *testing.T) {
	for _, quota := range []int64{16 << 20, 64 << 20, 2 << 30, 7 << 30, defaultQuota, storage.MaxQuotaBytes, 16 << 30} {
		t.Run(fmt.Sprint(quota), func(t *testing.T) {
			share := quota / 100 * 2
			assert.Greater(t, reservedForLeasesAt(quota), quota/100*fullAt+share)
			assert.Less(t, reservedForLeasesAt(quota), hardQuota(quota)-share)
		})
	}
}
