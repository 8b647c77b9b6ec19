//go:build js && wasm

package opfs

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Times between two looks at the table without a notification. A waiter looks between the fastest and the slowest
// interval, to notice that a holder is gone. A holder looks to notice that it lost its lock.
const (
	fastest = 150 * time.Millisecond
	slowest = 400 * time.Millisecond
	resting = time.Second
	// restingElsewhere is the interval of a client whose locks another mechanism keeps.
	restingElsewhere = 5 * time.Second
	// linger is how long a client without entries keeps its liveness file, because it often makes the next request too.
	linger = time.Second
	// sweeping is the interval at which a client looks for others that are gone.
	sweeping = 2 * time.Second
	// failures is how many looks in a row may fail before the waiters get the error, unless the browser is silent, and the grants of a
	// client without a liveness file are lost.
	failures = 3
)

// maintenance looks at the table for one client while that client is in it.
type maintenance struct {
	steps     *steps
	questions *questions

	work     sync.WaitGroup // of its goroutine
	poke     chan struct{}  // capacity 1: the table has changed for this client
	waits    chan struct{}  // capacity 1: this client begins to wait
	swept    time.Duration
	sweptAll time.Duration // after all clients
}

// wake makes maintain look at the table.
func (m *maintenance) wake() { signal(m.poke) }

// maintain looks at the table for this client, until the client has had no entry for some time.
func (m *maintenance) maintain() {
	timer := time.NewTimer(resting)
	defer timer.Stop()
	pause, failed := fastest, 0
	for {
		select {
		case <-m.steps.life.Done():
			return
		case <-m.waits: // the pause becomes shorter
			pause = fastest
			timer.Reset(m.pause(pause))
			continue
		case <-m.poke:
			pause = fastest
		case <-timer.C:
			pause = min(pause*3/2, slowest)
		}
		ctx, stop := context.WithTimeout(m.steps.life, stepLimit)
		err := m.steps.revisit(ctx, nothing)
		if err == nil {
			err = m.sweep(ctx, false)
		}
		if err == nil && m.steps.idle() {
			_ = m.sweep(ctx, true)
			if m.rest(ctx) {
				stop()
				return
			}
		}
		if err == nil || errors.Is(err, errFuture) {
			failed = 0
		} else if failed++; failed >= failures {
			if m.steps.liveness.alive.ended() { // others count this client as dead
				m.steps.requests.lose()
			}
			m.steps.requests.fail(ctx, err)
		}
		stop()
		timer.Reset(m.pause(pause))
	}
}

// sweep removes clients that ended without blocking anybody. The client that has been there longest does this. The
// others sweep only after that client, and once in a TTL after all: that client may be frozen.
func (m *maintenance) sweep(ctx context.Context, last bool) error {
	now := m.steps.options.Clock.Now().Mono
	if !last && now-m.swept < sweeping {
		return nil
	}
	m.swept = now
	absent := func(client string) bool { return !slices.Contains(m.steps.clients, client) }
	m.steps.liveness.forget(absent)
	m.questions.forget(absent)
	look := suspects{clients: m.steps.clients}
	if len(m.steps.clients) > 0 && m.steps.clients[0] != m.steps.liveness.alive.id && !last && now-m.sweptAll < m.steps.options.TTL {
		look.clients = m.steps.clients[:1]
	} else if files, err := m.steps.liveness.alive.others(ctx); err == nil {
		look.clients, m.sweptAll = append(files, m.steps.clients...), now
	}
	if m.steps.liveness.investigate(ctx, look) {
		return m.steps.revisit(ctx, nothing)
	}
	return nil
}

// pause returns how long maintain sleeps.
func (m *maintenance) pause(base time.Duration) time.Duration {
	switch {
	case m.steps.requests.waiting():
		return base/2 + rand.N(base/2)
	case slices.ContainsFunc(m.steps.own, (*entry).bars):
		return resting
	case len(m.steps.own) > 1:
		return restingElsewhere
	}
	return max(slowest, linger-(m.steps.options.Clock.Now().Mono-m.steps.used))
}

// rest closes the liveness file when it is no longer needed.
func (m *maintenance) rest(ctx context.Context) bool {
	if !m.steps.turn.take(ctx) {
		return false
	}
	defer m.steps.turn.give()
	if !m.steps.idle() {
		return false
	}
	_ = m.steps.depart(ctx) // if this fails, other clients notice that this client is gone
	return true
}
