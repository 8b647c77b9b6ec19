package autosave

import (
	"context"
	"sync"
	"time"
)

// loop is the goroutine that owns the state of a Saver, with the goroutines that work for it. The comments of this package call it the loop.
// The types that embed this one contain the state.
type loop struct {
	inbox chan func()   // functions that the loop calls
	wake  chan struct{} // capacity 1: a message or another change waits for the loop
	timer *time.Timer   // the next deadline
	work  sync.WaitGroup
	life  context.Context // ends with the Saver
	end   context.CancelFunc
	gone  chan struct{} // closed when the loop has ended
}

// open prepares a loop that is not running yet.
func (l *loop) open() {
	l.inbox, l.wake, l.gone = make(chan func()), make(chan struct{}, 1), make(chan struct{})
	l.timer = time.NewTimer(time.Hour)
	l.life, l.end = context.WithCancel(context.Background())
}

// do runs f on the loop, and waits until f has returned. It reports whether f has run: it has not if the loop has ended.
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

// wakeLoop makes the loop handle the received messages and begin what is due. It does not wait.
func (l *loop) wakeLoop() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}
