package autosavetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Fault is how an operation fails.
type Fault int

// The faults. All make the operation fail.
const (
	Refused Fault = iota + 1 // nothing has happened
	Torn                     // half of the write has happened
	Lied                     // it has happened nevertheless
)

// Faults are all of them.
var Faults = []Fault{Refused, Torn, Lied}

func (f Fault) String() string { return [...]string{"none", "refused", "torn", "lied"}[f] }

var (
	// ErrDisk is the error of an operation that was made to fail.
	ErrDisk = errors.New("the disk failed")
	// ErrKilled is the error of every operation of a client that was killed.
	ErrKilled = errors.New("the page is gone")
)

// Steps counts the operations of one page, and makes them fail.
type Steps struct {
	mu     sync.Mutex
	ops    int // so far
	at     int // the operation that fails, if fault is set
	fault  Fault
	dies   bool // the page dies there
	always bool // every later one fails too
	killed bool
	log    []string

	// Before, if set, runs before each operation, with its name, such as "write history/1-2". It may block, as a page
	// that is frozen there does.
	Before func(operation string)
	// Fails, if set, returns the fault of an operation, or 0.
	Fails func(operation string) Fault
}

// Break makes the n-th operation from now on fail, 0 being the next one. If it dies,
// no later operation has an effect, as if the page were killed there.
func (c *Steps) Break(n int, f Fault, dies bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.fault, c.dies, c.always = c.ops+n, f, dies, false
}

// Fail makes every operation from now on fail.
func (c *Steps) Fail() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.fault, c.dies, c.always = c.ops, Refused, false, true
}

// Mend ends what Break and Fail have begun.
func (c *Steps) Mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault, c.always = 0, false
}

// Kill makes all later operations have no effect.
func (c *Steps) Kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.killed = true
}

// Killed reports whether Kill was called, or a fault of Break has killed the page.
func (c *Steps) Killed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.killed
}

// Ops returns the number of operations so far.
func (c *Steps) Ops() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ops
}

// Log returns the operations since it was last called.
func (c *Steps) Log() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	log := c.log
	c.log = nil
	return log
}

// step counts an operation and returns its fault.
func (c *Steps) step(ctx context.Context, operation string) (Fault, error) {
	if c.Before != nil {
		c.Before(operation)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return Refused, context.Cause(ctx)
	}
	if c.killed {
		return Refused, ErrKilled
	}
	n := c.ops
	c.ops++
	c.log = append(c.log, operation)
	var fault Fault
	if c.Fails != nil {
		fault = c.Fails(operation)
	}
	if fault == 0 && c.fault != 0 && (n == c.at || c.always && n > c.at) {
		fault, c.killed = c.fault, c.dies
	}
	if fault == 0 {
		return 0, nil
	}
	return fault, fmt.Errorf("%w at %s", ErrDisk, operation)
}
