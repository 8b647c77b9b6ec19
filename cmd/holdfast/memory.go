package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

const (
	// gcPercent trades a little processor time for memory: what is live is small and what is passing is much.
	gcPercent = 30
	// garbageRoom is how much garbage may gather at least before it is collected. While little is live, 30 % of it is so little that
	// collecting took a third of the processor time of a busy server.
	garbageRoom  = 20 << 20
	maxGCPercent = 400
	liveHeap     = "/gc/heap/live:bytes"
)

// saveMemory collects garbage early from now on. It runs after the start: while a server reads its store, everything is live, and
// collecting that often takes half of the time.
func saveMemory() {
	if os.Getenv("GOGC") == "" {
		(&collector{}).follow()
		debug.FreeOSMemory()
	}
}

// collector sets the garbage collector after each of its cycles by what is live.
type collector struct {
	percent atomic.Int64
	ended   atomic.Bool // a test is over
}

// follow sets the collector now and at the end of each cycle: a cleanup runs after the cycle that finds its object unreachable.
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

// percentFor returns the percentage for so many live bytes, in steps of five: to set it stops the program for a moment.
func percentFor(live uint64) int64 {
	p := int64(garbageRoom * 100 / max(live, 1))
	return min(max(p-p%5, gcPercent), maxGCPercent)
}
