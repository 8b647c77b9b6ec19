//go:build js && wasm

package jsbridge

import "sync"

// pool runs functions on goroutines that have run others before. Their stacks have already grown, and growing costs
// more than most of these functions. The zero value is ready to use.
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
	case p.tasks <- f: // to a waiting goroutine
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

// close waits for the running functions and ends the goroutines.
func (p *pool) close() {
	p.init()
	close(p.closed)
	p.all.Wait()
}
