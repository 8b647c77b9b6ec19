//go:build js && wasm

package opfs

import (
	"context"
	"errors"
	"runtime"
	"slices"
)

// maxOperations is the maximum number of operations in one step: other clients wait while a step is decided and written.
const maxOperations = 128

// operation is a change of the table for which a caller waits. It is answered when the table that contains it is written.
type operation struct {
	change func(*session) error // may be called several times, each time for a table that may contain its effect
	ends   string               // the id that it removes, if that is all it does

	err      error         // of change
	grants   []string      // the requests that it has granted
	answered chan error    // capacity 1
	left     chan struct{} // closed when the caller has gone on
}

// errLater ends a step before an operation that has to be the first one of its step.
var errLater = errors.New("another step")

// visit makes a change after all operations that this client began before, and reports whether it took effect.
// Operations that wait at the same time are made in one step: the table is written once for them. Its result is the same as if they
// were made one after the other. If the write fails, all of them fail.
func (c *steps) visit(ctx context.Context, change func(*session) error) error {
	return c.operate(ctx, &operation{change: change})
}

// remove removes an entry of this client, or the record of a lease, by its id. It makes no step if the table cannot have it. If it fails, the
// next step removes it.
func (c *steps) remove(ctx context.Context, id string) error {
	err := c.operate(ctx, &operation{ends: id, change: func(s *session) error { s.free(s.end(id)); return nil }})
	if err != nil {
		c.ended = append(c.ended, id)
	}
	return err
}

func (c *steps) operate(ctx context.Context, o *operation) error {
	o.answered, o.left = make(chan error, 1), make(chan struct{})
	defer close(o.left)
	p := c.order.join(o, c.run)
	select {
	case err := <-o.answered:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-o.answered:
		return err
	default:
		p.abandon(o)
		return context.Cause(ctx)
	}
}

// run makes the operations of a position in the line, and answers them. Others join until it leaves the line.
func (c *steps) run(p *position) {
	runtime.Gosched() // the operations that others begin in this turn join
	for len(p.operations) > 0 {
		made := c.make(p)
		gone := p.gone
		p.gone = nil
		for _, o := range gone {
			if !slices.Contains(made, o) {
				c.tell(o) // before later operations: a step that is made again may have granted them
			}
		}
		c.answer(made)
		if len(made) > 0 || len(p.operations) == 0 {
			c.requests.tellAll(c.own) // whatever else was granted
		}
	}
	c.order.leave(p)
}

// make makes a step with the first operations of a position, finds out whether the clients that block them live, and returns the operations
// with their results. It returns none if the step has to be made again, because a client does not live, the helper ended or a caller has
// given up. An operation that is in the table already has no effect then.
func (c *steps) make(p *position) (made []*operation) {
	ctx, end := context.WithCancel(context.Background())
	p.end = end
	defer end()
	p.deciding = p.next()
	if c.needed(ctx, p.deciding) {
		look, err := c.attempt(ctx, p)
		for _, o := range p.deciding {
			if ctx.Err() != nil && err != nil {
				o.err = nil // the step was not made
			} else if err != nil {
				o.err = err // nothing says how much of it is in the file
			}
		}
		if c.liveness.investigate(ctx, look) || ctx.Err() != nil || err == nil && c.liveness.alive.ended() {
			return nil
		}
	}
	made, p.deciding = p.deciding, nil
	p.remove(made...)
	return made
}

// attempt makes a step with the first operations of a position, and notes which ones.
func (c *steps) attempt(ctx context.Context, p *position) (suspects, error) {
	c.used = c.options.Clock.Now().Mono
	return c.step(ctx, func(s *session) error {
		if s.first = p.deciding[0]; ctx.Err() == nil { // otherwise nobody waits, and the write may go on when its end is not seen here
			p.deciding = p.next() // others may have joined
			p.deciding = p.deciding[:s.make(p.deciding)]
		}
		return nil
	})
}

// needed reports whether an operation can have an effect. A removal has none if the table cannot have its entry.
func (c *steps) needed(ctx context.Context, operations []*operation) bool {
	if !c.turn.take(ctx) {
		return true
	}
	defer c.turn.give()
	there := c.liveness.alive.file != nil
	if !there {
		c.ended = nil
	}
	return slices.ContainsFunc(operations, func(o *operation) bool {
		return o.ends == "" || there && (c.doubt || slices.ContainsFunc(c.own, func(e *entry) bool {
			return e.id == o.ends || e.lease != nil && e.lease.LeaseID == o.ends
		}))
	})
}

// answer lets the callers of operations go on, in the order in which these took effect. Each one goes on before the next, and after the waiters that
// its operation has granted.
func (c *steps) answer(made []*operation) {
	for _, o := range made {
		c.tell(o)
		o.answered <- o.err
		<-o.left
	}
}

// tell lets the waiters go on that an operation has granted.
func (c *steps) tell(o *operation) {
	for _, id := range o.grants {
		c.requests.tell(id)
	}
}
