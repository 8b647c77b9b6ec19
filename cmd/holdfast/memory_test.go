package main

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGarbageRoom(t *testing.T) {
	for live, percent := range map[uint64]int64{
		0: maxGCPercent, 1 << 20: maxGCPercent, 10 << 20: 200, 15 << 20: 130, 40 << 20: 50, 64 << 20: 30, 1 << 30: 30,
	} {
		assert.Equal(t, percent, percentFor(live), live)
	}
}

// The collector continues after every cycle, not only after the first.
func TestCollectorFollowsEveryCycle(t *testing.T) {
	old := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(old) })
	c := &collector{}
	c.follow()
	for range 3 {
		c.percent.Store(-1)
		require.Eventually(t, func() bool { runtime.GC(); return c.percent.Load() > 0 }, 30*time.Second, time.Millisecond)
	}
	c.ended.Store(true)
}
