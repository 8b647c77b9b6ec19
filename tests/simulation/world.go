package simulation

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// world is one run: its seed, its steps, and the findings of the checker.
type world struct {
	seed      uint64
	verbose   bool // every request is recorded
	began     time.Time
	steps     *dice // for steps without an actor
	takenFrom func(at *origin, stealer *tab, holder string)

	mu       sync.Mutex
	trace    []string
	findings []string
	counts   map[string]int
}

// maxTrace is how many steps are kept: the last ones, or those around the first finding.
const maxTrace = 4000

func newWorld(seed uint64) *world {
	w := &world{seed: seed, began: time.Now(), counts: make(map[string]int)}
	w.steps = w.dice("world")
	return w
}

// dice returns the random numbers of one actor.
func (w *world) dice(actor string) *dice {
	h := fnv.New64a()
	_, _ = h.Write([]byte(actor))
	return &dice{random: rand.New(rand.NewPCG(w.seed, h.Sum64()))}
}

// note adds a step to the trace.
func (w *world) note(actor, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.write(actor, fmt.Sprintf(format, args...))
}

func (w *world) write(actor, text string) {
	if len(w.trace) == maxTrace && len(w.findings) > 0 {
		return
	}
	if len(w.trace) == maxTrace {
		w.trace = append(w.trace[:0], w.trace[maxTrace/2:]...)
	}
	w.trace = append(w.trace, fmt.Sprintf("%12.6f %-14s %s", w.now().Seconds(), actor, text))
}

// found records a broken promise.
func (w *world) found(promise, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := promise + ": " + fmt.Sprintf(format, args...)
	w.write("CHECKER", text)
	w.findings = append(w.findings, text)
}

// count increases a figure of the report.
func (w *world) count(what string) {
	w.mu.Lock()
	w.counts[what]++
	w.mu.Unlock()
}

// now is how long the run has lasted.
func (w *world) now() time.Duration { return time.Since(w.began) }

// dice are random numbers of a seed, for any goroutine.
type dice struct {
	mu     sync.Mutex
	random *rand.Rand
}

// n returns a number from 0 to below n.
func (d *dice) n(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.IntN(n)
}

// chance returns true with this probability.
func (d *dice) chance(p float64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.Float64() < p
}

// between returns a log-uniform duration: as often from 1 to 10 ms as from 100 to 1000 ms.
func (d *dice) between(low, high time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	span := math.Log(float64(high)) - math.Log(float64(low))
	return time.Duration(math.Exp(math.Log(float64(low)) + span*d.random.Float64()))
}

// pick returns one of the values.
func pick[T any](d *dice, values ...T) T { return values[d.n(len(values))] }
