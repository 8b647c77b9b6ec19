package kv

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Each part is in one batch, and each batch is within the limits of etcd, if each part is.
func TestBatchesAreWithinTheLimits(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 40 {
		longest, largest := 1+r.IntN(MaxOps), 1+r.IntN(maxShared)
		var parts []*part
		seen := map[*part]int{}
		for i := range 1 + r.IntN(400) {
			p := &part{Txn: Txn{Then: []Op{Put(fmt.Sprint(i), make([]byte, r.IntN(largest)))}}}
			for j := range r.IntN(longest) {
				p.If = append(p.If, Absent(fmt.Sprint("none/", j)))
			}
			if r.IntN(5) == 0 {
				p.Apart = "name"
			}
			parts = append(parts, p)
		}
		for _, batch := range divide(parts) {
			width, size := 0, 0
			for _, p := range batch {
				seen[p]++
				width, size = max(width, p.width()), size+p.size()
			}
			if len(batch) > 1 {
				assert.LessOrEqual(t, len(batch)+width, MaxOps)
				assert.LessOrEqual(t, size, MaxRequest)
			}
			assert.NotEmpty(t, batch)
		}
		assert.Len(t, seen, len(parts))
		for _, n := range seen {
			assert.Equal(t, 1, n)
		}
	}
}
