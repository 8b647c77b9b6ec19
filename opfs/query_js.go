//go:build js && wasm

package opfs

import (
	"context"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
)

// Query implements [lock.Locker]. It leaves out clients that are gone.
func (c *FileLocks) Query(ctx context.Context) (lock.Snapshot, error) {
	t, err := c.steps.look(ctx)
	if err != nil {
		return lock.Snapshot{}, err
	}
	return t.snapshot(), nil
}

// QuerySettled is a Query that sees all earlier operations of this client and none of its later ones. It also sees
// the operations that other running clients had begun when it was called, and counts a lock as held if it is free for a waiter. It
// takes some milliseconds more than Query, and costs each other client some milliseconds.
func (c *FileLocks) QuerySettled(ctx context.Context) (lock.Snapshot, error) {
	ctx, end := c.steps.patient(ctx, errNotRead)
	defer end()
	t, number, err := c.ask(ctx)
	if err == nil && c.awaitAnswers(ctx, t, number) {
		before, me := t, c.steps.liveness.alive.id
		if t, err = c.steps.look(ctx); err == nil {
			t.restore(me, before)
		}
	}
	if err != nil {
		return lock.Snapshot{}, err
	}
	for _, e := range t.next() {
		e.state = granted // it is granted for all other clients
	}
	return t.snapshot(), nil
}

// ask notifies the other clients and reads the table, in the order of this client's operations.
func (c *FileLocks) ask(ctx context.Context) (t *table, number int64, err error) {
	if !c.steps.order.take(ctx) {
		return nil, 0, context.Cause(ctx)
	}
	defer c.steps.order.give()
	number = c.questions.next()
	c.steps.notifier.notify([]string{asking, c.questions.name, strconv.FormatInt(number, 10)})
	t, err = c.steps.look(ctx)
	return t, number, err
}

// snapshot lists the holders and the waiters.
func (t *table) snapshot() (s lock.Snapshot) {
	for _, e := range t.queue {
		for _, w := range e.wants {
			info := lock.Info{Name: w.Name, Mode: w.Mode, ClientID: e.client}
			switch e.state {
			case granted:
				s.Held = append(s.Held, info)
			case waiting:
				s.Pending = append(s.Pending, info)
			}
		}
	}
	return s
}

// awaitAnswers waits for the answers of the clients in the table. It reports whether there are any.
func (c *FileLocks) awaitAnswers(ctx context.Context, t *table, number int64) (others bool) {
	for begun := c.steps.options.Clock.Now().Mono; ; {
		waited := c.steps.options.Clock.Now().Mono - begun
		var missing []string
		for _, e := range t.queue {
			if e.state == present && e.client != c.steps.liveness.alive.id && !c.steps.liveness.dead[e.client] {
				others = true
				if c.questions.unanswered(e.client, number, waited) {
					missing = append(missing, e.client)
				}
			}
		}
		if waited > probeAfter {
			c.steps.liveness.investigate(ctx, suspects{clients: missing})
		}
		if len(missing) == 0 || wait.For(ctx, time.Millisecond) != nil {
			return others
		}
	}
}

// answer answers another client's question once the operations that this client had begun before it are done.
func (c *FileLocks) answer(asker, number string) {
	if !c.steps.order.take(c.steps.life) {
		return
	}
	defer c.steps.order.give()
	if c.steps.turn.take(c.steps.life) {
		me, there := c.steps.liveness.alive.id, c.steps.liveness.alive.file != nil
		c.steps.turn.give()
		if there {
			c.steps.notifier.notify([]string{answering, asker, number, me})
		}
	}
}
