package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

const (
	// gcPercent trades a little processor time for memory, because live data is small and temporary data is large.
	gcPercent = 30
	// garbageRoom is the minimum amount of garbage before a collection. With little live data, 30 % of it is so small
	// that collections took a third of a busy server's processor time.
	garbageRoom  = 20 << 20
	maxGCPercent = 400
	liveHeap     = "/gc/heap/live:bytes"
)

// saveMemory makes the collector run early from now on. The caller calls it after the start: while a server reads its
// store, all data is live, and frequent collections take half of the time.
func saveMemory() {
	if os.Getenv("GOGC") == "" {
		(&collector{}).follow()
		debug.FreeOSMemory()
	}
}

// collector adjusts the garbage collector after each of its cycles to the amount of live data.
type collector struct {
	percent atomic.Int64
	ended   atomic.Bool // set at the end of a test
}

// follow adjusts the collector now and at the end of each cycle. A cleanup runs after the cycle that finds its object
// unreachable.
func (c *collector) follow() {
	if c.ended.Load() {
		return
	}
	sample := []metrics.Sample{{Name: liveHeap}}
	metrics.Read(sample)
	if p := percentFor(sample[0].Value.Uint64()); c.percent.Swap(p) != p {
		debug.SetGCPercent(int(p))
	}
	runtime.AddCleanup(new([16]byte), func(c *collector) { go c.follow() }, c)
}

// percentFor returns the percentage for this amount of live bytes, in steps of five, because each change stops the
// program for a moment.
func percentFor(live uint64) int64 {
	p := int64(garbageRoom * 100 / max(live, 1))
	return min(max(p-p%5, gcPercent), maxGCPercent)
}
