//go:build js && wasm

package opfs

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
)

// Query implements [lock.Locker]. It leaves out clients that are gone.
func (c *FileLocks) Query(ctx context.Context) (lock.Snapshot, error) {
	t, err := c.look(ctx)
	if err != nil {
		return lock.Snapshot{}, err
	}
	return t.snapshot(), nil
}

// QuerySettled is a Query that sees all earlier operations of this client and none of its later ones. It also sees
// the operations that other running clients had begun when it was called, and counts a lock as held if it is free for a waiter. It
// takes some milliseconds more than Query, and costs each other client some milliseconds.
func (c *FileLocks) QuerySettled(ctx context.Context) (lock.Snapshot, error) {
	t, number, err := c.ask(ctx)
	if err == nil && c.heardOut(ctx, t, number) {
		before, me := t, c.liveness.alive.id
		if t, err = c.look(ctx); err == nil {
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
	if !c.order.take(ctx) {
		return nil, 0, context.Cause(ctx)
	}
	defer c.order.give()
	number, words := c.questions.next()
	c.notifier().notify(words)
	t, err = c.look(ctx)
	return t, number, err
}

// snapshot lists the holders and the waiters.
func (t *table) snapshot() (s lock.Snapshot) {
	for _, e := range t.queue {
		for _, w := range e.wants {
			info := lock.Info{Name: w.Name, Mode: w.Mode, ClientID: e.client}
			if e.state == granted {
				s.Held = append(s.Held, info)
			} else {
				s.Pending = append(s.Pending, info)
			}
		}
	}
	return s
}

// heardOut waits for the answers of the clients in the table. It reports whether there are any.
func (c *FileLocks) heardOut(ctx context.Context, t *table, number int64) (others bool) {
	var clients []string
	for _, e := range t.queue {
		if e.state == present && e.client != c.liveness.alive.id {
			clients = append(clients, e.client)
		}
	}
	for begun := c.options.Clock.Now().Mono; ; {
		clients = slices.DeleteFunc(clients, func(client string) bool { return c.liveness.dead[client] })
		others = others || len(clients) > 0
		waited := c.options.Clock.Now().Mono - begun
		missing := c.questions.unanswered(number, clients, waited)
		if waited > doubtful {
			c.liveness.investigate(ctx, suspects{clients: missing})
		}
		if len(missing) == 0 || wait.For(ctx, time.Millisecond) != nil {
			return others
		}
	}
}

// answer answers another client's question once the operations that this client had begun before it are done.
func (c *FileLocks) answer(asker, number string) {
	if !c.order.take(c.life) {
		return
	}
	defer c.order.give()
	if c.turn.take(c.life) {
		me, there := c.liveness.alive.id, c.liveness.alive.file != nil
		c.turn.give()
		if there {
			c.notifier().notify([]string{answering, asker, number, me})
		}
	}
}

// look reads the table without changing it, and leaves out clients that are gone.
func (c *FileLocks) look(ctx context.Context) (*table, error) {
	t, err := c.glance(ctx)
	if err != nil {
		return nil, err
	}
	var clients []string
	for _, e := range t.queue {
		if e.state != present && !slices.Contains(clients, e.client) {
			clients = append(clients, e.client)
		}
	}
	c.liveness.investigate(ctx, suspects{clients: clients})
	t.queue = slices.DeleteFunc(t.queue, func(e *entry) bool { return c.liveness.dead[e.client] })
	return t, context.Cause(ctx)
}

// glance reads the table as it is.
func (c *FileLocks) glance(ctx context.Context) (*table, error) {
	if !c.turn.take(ctx) {
		return nil, context.Cause(ctx)
	}
	defer c.turn.give()
	image, err := c.file.content(ctx)
	if isNamed(err, notFound) {
		return &table{}, nil
	}
	if err != nil {
		return nil, c.file.explain(ctx, err)
	}
	now, _, err := newest(image)
	if errors.Is(err, errFuture) {
		return nil, &lock.Error{Code: lock.CodeFallbackConflict, Err: errFuture, Detail: "reload this page"}
	}
	if t, broken := decode(now.text); broken == nil {
		return t, nil
	}
	// The content is lost; what this client knows of itself is not.
	t := &table{}
	for _, e := range c.own {
		t.queue = append(t.queue, e.clone())
	}
	return t, nil
}
