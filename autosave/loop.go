package autosave

import (
	"context"
	"sync"
	"time"
)

// loop is the goroutine that owns the state of a Saver, and the goroutines that work for it. The types that embed a loop have the state.
type loop struct {
	inbox chan func()
	wake  chan struct{} // capacity 1
	timer *time.Timer   // the next deadline
	work  sync.WaitGroup
	life  context.Context // ends with the Saver
	end   context.CancelFunc
	gone  chan struct{} // closed when the goroutine has ended
}

// open prepares a loop that is not running yet.
func (l *loop) open() {
	l.inbox, l.wake, l.gone = make(chan func()), make(chan struct{}, 1), make(chan struct{})
	l.timer = time.NewTimer(time.Hour)
	l.life, l.end = context.WithCancel(context.Background())
}

// do runs f on the goroutine that owns the state and waits for it. It reports whether f has run.
func (l *loop) do(f func()) bool {
	done := make(chan struct{})
	select {
	case l.inbox <- func() { defer close(done); f() }:
		<-done
		return true
	case <-l.gone:
		return false
	}
}

// wakeOwner wakes the goroutine that owns the state.
func (l *loop) wakeOwner() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}
