package simulation

import (
	"errors"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

var errDead = errors.New("this tab is gone")

// tab is one execution context. Everything in it stops while it is frozen, and has no effect on others once it is
// dead.
type tab struct {
	w    *world
	name string
	at   *origin
	dice *dice
	dead chan struct{} // closed when it crashes or is closed

	mu      sync.Mutex
	thawed  chan struct{} // not nil while it is frozen; closed when it resumes
	since   time.Time     // of the current freeze, or of the last one's end
	asleep  time.Duration // in all past freezes
	freezes int
	stops   int // how many reasons keep it frozen: it may be frozen while its machine sleeps

	inbox *inbox
	end   func() // if set, closes what the browser closes with the tab
}

func newTab(w *world, name string, at *origin) *tab {
	t := &tab{w: w, name: name, at: at, dice: w.dice(name), dead: make(chan struct{})}
	t.inbox = newInbox(t)
	return t
}

// awake returns when the tab may run. It fails if the tab is dead.
func (t *tab) awake() error {
	for {
		t.mu.Lock()
		thawed := t.thawed
		t.mu.Unlock()
		if t.gone() {
			return errDead
		}
		if thawed == nil {
			return nil
		}
		select {
		case <-thawed:
		case <-t.dead:
		}
	}
}

// step is one step of the tab's code. It takes a moment, and sometimes longer because the tab has other work.
func (t *tab) step() error {
	if err := t.awake(); err != nil {
		return err
	}
	pause := t.dice.between(20*time.Microsecond, 2*time.Millisecond)
	if t.dice.chance(0.01) {
		pause = t.dice.between(2*time.Millisecond, 100*time.Millisecond)
	}
	time.Sleep(pause)
	return t.awake()
}

// freeze stops the tab until thaw was called as often. It reports whether the tab exists.
func (t *tab) freeze() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone() {
		return false
	}
	if t.stops++; t.stops == 1 {
		t.thawed, t.since = make(chan struct{}), time.Now()
		t.freezes++
	}
	return true
}

func (t *tab) thaw() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stops = max(0, t.stops-1); t.stops == 0 && t.thawed != nil {
		t.asleep += time.Since(t.since)
		close(t.thawed)
		t.thawed, t.since = nil, time.Now()
	}
}

// crash ends the tab. Its goroutines end without any effect on others.
func (t *tab) crash() {
	t.mu.Lock()
	if !t.gone() {
		close(t.dead)
	}
	t.stops = 0
	t.mu.Unlock()
	t.thaw()
	if t.end != nil {
		t.end()
	}
	t.at.forget(t)
}

func (t *tab) gone() bool {
	select {
	case <-t.dead:
		return true
	default:
		return false
	}
}

// runs reports whether the tab has been running for this long.
func (t *tab) runs(long time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.gone() && t.thawed == nil && (t.freezes == 0 || time.Since(t.since) >= long)
}

// slept returns how long the tab has been frozen in total, and how often.
func (t *tab) slept() (time.Duration, int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.thawed != nil {
		return t.asleep + time.Since(t.since), t.freezes
	}
	return t.asleep, t.freezes
}

// Now implements [lock.Clock]. A frozen tab does not read a clock until it resumes.
func (t *tab) Now() lock.Instant {
	_ = t.awake()
	return t.at.clock.now()
}
