package lock

import "time"

// Instant is one reading of both clocks. Neither clock alone can be trusted: the monotonic clock of a browser stops
// while the machine sleeps, and the wall clock can be set.
type Instant struct {
	Wall time.Time
	Mono time.Duration
}

// Since returns the time since earlier, by the clock that reports the longer time.
func (i Instant) Since(earlier Instant) time.Duration {
	return max(i.Mono-earlier.Mono, i.Wall.Sub(earlier.Wall))
}

// Clock reads both clocks at once.
type Clock interface{ Now() Instant }

// SystemClock is the clock of the process.
type SystemClock struct{}

var processStart = time.Now()

// Now reads the wall and the monotonic clock.
func (SystemClock) Now() Instant {
	now := time.Now()
	return Instant{Wall: now.Round(0), Mono: now.Sub(processStart)}
}
