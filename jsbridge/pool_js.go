//go:build js && wasm

package jsbridge

import "sync"

// pool runs functions on goroutines that have run others before: their stacks have
// grown already, and growing costs more than most of what is run. The zero value is
// ready to use.
type pool struct {
	once   sync.Once
	tasks  chan func()
	closed chan struct{}
	all    sync.WaitGroup
}

func (p *pool) init() {
	p.once.Do(func() { p.tasks, p.closed = make(chan func()), make(chan struct{}) })
}

// run starts f and does not wait for it.
func (p *pool) run(f func()) {
	p.init()
	select {
	case p.tasks <- f: // to a goroutine that waits
	default:
		p.all.Go(func() { p.work(f) })
	}
}

func (p *pool) work(f func()) {
	for {
		f()
		select {
		case f = <-p.tasks:
		case <-p.closed:
			return
		}
	}
}

// close waits for what runs and ends the goroutines.
func (p *pool) close() {
	p.init()
	close(p.closed)
	p.all.Wait()
}
