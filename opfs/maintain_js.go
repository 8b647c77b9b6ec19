//go:build js && wasm

package opfs

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"
)

// Times between two looks at the table without a notification. A waiter looks between the fastest and the slowest
// interval, to notice that a holder is gone. A holder looks to notice that it lost its lock.
const (
	fastest = 150 * time.Millisecond
	slowest = 400 * time.Millisecond
	resting = time.Second
	// slumber is the interval of a client whose locks another mechanism keeps.
	slumber = 5 * time.Second
	// linger is how long a client without entries keeps its liveness file, because it often makes the next request too.
	linger = time.Second
	// sweeping is the interval at which a client looks for others that are gone.
	sweeping = 2 * time.Second
	// failures is how many looks in a row may fail before the waiters get the error.
	failures = 3
)

// maintain looks at the table for this client, until the client has had no entry for some time.
func (c *FileLocks) maintain() {
	timer := time.NewTimer(resting)
	defer timer.Stop()
	pause, failed := fastest, 0
	for {
		select {
		case <-c.life.Done():
			return
		case <-c.waits: // the pause becomes shorter
			pause = fastest
			timer.Reset(c.pause(pause))
			continue
		case <-c.poke:
			pause = fastest
		case <-timer.C:
			pause = min(pause*3/2, slowest)
		}
		ctx, stop := context.WithTimeout(c.life, stepLimit)
		err := c.revisit(ctx, nothing)
		if err == nil {
			err = c.sweep(ctx, false)
		}
		if err == nil && c.idle() {
			_ = c.sweep(ctx, true)
			if c.rest(ctx) {
				stop()
				return
			}
		}
		if err == nil || ctx.Err() != nil || errors.Is(err, errFuture) {
			failed = 0
		} else if failed++; failed >= failures {
			c.requests.fail(err)
		}
		stop()
		timer.Reset(c.pause(pause))
	}
}

func nothing(*session) error { return nil }

// sweep removes clients that ended without blocking anybody. The client that has been there longest does this; the
// others sweep only after that client.
func (c *FileLocks) sweep(ctx context.Context, last bool) error {
	now := c.options.Clock.Now().Mono
	if !last && now-c.swept < sweeping {
		return nil
	}
	c.swept = now
	absent := func(client string) bool { return !slices.Contains(c.clients, client) }
	c.liveness.forget(absent)
	c.questions.forget(absent)
	look := suspects{clients: c.clients}
	if len(c.clients) > 0 && c.clients[0] != c.liveness.alive.id && !last {
		look.clients = c.clients[:1]
	} else if files, err := c.liveness.alive.others(ctx); err == nil {
		look.clients = append(files, c.clients...)
	}
	if c.liveness.investigate(ctx, look) {
		return c.revisit(ctx, nothing)
	}
	return nil
}

// pause returns how long maintain sleeps.
func (c *FileLocks) pause(base time.Duration) time.Duration {
	switch {
	case c.requests.waiting():
		return base/2 + rand.N(base/2)
	case slices.ContainsFunc(c.own, (*entry).bars):
		return resting
	case len(c.own) > 1:
		return slumber
	}
	return max(shortest, linger-(c.options.Clock.Now().Mono-c.used))
}

// rest closes the liveness file when it is no longer needed.
func (c *FileLocks) rest(ctx context.Context) bool {
	if !c.turn.take(ctx) {
		return false
	}
	defer c.turn.give()
	if !c.idle() {
		return false
	}
	_ = c.depart(ctx) // if this fails, other clients notice that this client is gone
	return true
}

// idle reports whether this client has had nothing but its presence in the table for some time.
func (c *FileLocks) idle() bool {
	return len(c.own) <= 1 && !c.doubt && c.options.Clock.Now().Mono-c.used >= linger
}

// depart removes everything of this client. The caller has the turn.
func (c *FileLocks) depart(ctx context.Context) error {
	c.own, c.leaving = nil, true
	_, err := c.stepLocked(ctx, nothing)
	c.own, c.leaving = nil, false
	c.liveness.alive.end(ctx)
	return err
}

// leave removes the entry of this client that has the id.
func (c *FileLocks) leave(ctx context.Context, id string) error {
	if !c.order.take(ctx) {
		c.disown(id)
		return context.Cause(ctx)
	}
	defer c.order.give()
	if !c.turn.take(ctx) {
		c.disown(id)
		return context.Cause(ctx)
	}
	none := c.liveness.alive.file == nil || !c.doubt && !slices.ContainsFunc(c.own, func(e *entry) bool { return e.id == id })
	c.turn.give()
	if none {
		return nil
	}
	err := c.use(ctx, func(s *session) error {
		e := s.t.find(id)
		if e == nil || e.client != c.liveness.alive.id {
			return nil
		}
		s.gave[id], s.changed = true, true
		delete(c.stalled, id)
		if e.state == granted {
			s.t.release(e)
		} else {
			s.t.remove(e)
		}
		return nil
	})
	if err != nil {
		c.disown(id)
	}
	return err
}

// disown forgets an entry that could not be removed: the next step removes it.
func (c *FileLocks) disown(id string) {
	c.own = slices.DeleteFunc(slices.Clone(c.own), func(e *entry) bool { return e.id == id })
	c.doubt = true
	c.wake()
}
