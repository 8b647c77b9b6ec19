//go:build js && wasm

package opfs

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
)

const (
	// freshness is how long a client that was found alive counts as alive.
	freshness = 100 * time.Millisecond
	// entryLimit is how long a client may live without an entry in the table: it is beginning or ending.
	entryLimit = 200 * time.Millisecond
)

// liveness is what one client knows about which clients live. The goroutine that has the turn may use its fields.
type liveness struct {
	options *Options
	turn    turn
	alive   alive

	dead          map[string]bool
	probed        map[string]time.Duration // when a client was last found alive
	present       presence                 // the living clients, if the last recovery asked for them
	unlisted      []string                 // clients that had a file, but no entry, when this client began
	unlistedFound time.Duration            // when they were first found to live
}

// presence lists the clients that were alive during a recovery.
type presence struct {
	until  time.Time // of the recovery
	living []string
}

// suspects are the clients that block this one and may be gone.
type suspects struct {
	clients  []string
	recovery time.Time // if not zero: the recovery that waits for all living clients
	called   bool      // the living clients were known when the step was decided
	unlisted []string  // clients with a file, but no entry
}

// begin makes this client a living one. The clients that have no entry then are unlisted. It finds them first, because nothing may
// fail once the client lives.
func (l *liveness) begin(ctx context.Context) (err error) {
	if l.unlisted, err = l.alive.others(ctx); err != nil {
		return err
	}
	l.unlistedFound = 0
	return l.alive.begin(ctx)
}

// findLiving finds out for a recovery which clients live. It reports whether that differs from what the last step knew.
func (l *liveness) findLiving(ctx context.Context, look suspects) (news bool) {
	others, err := l.alive.others(ctx)
	if err != nil {
		return false
	}
	living := l.alive.living(ctx, others)
	if !l.turn.take(ctx) {
		return false
	}
	defer l.turn.give()
	same := look.called && l.present.until.Equal(look.recovery) && slices.Equal(l.present.living, living)
	l.present = presence{look.recovery, living}
	return !same
}

// findUnlisted finds out which clients without an entry live, and waits a little for those to add one.
func (l *liveness) findUnlisted(ctx context.Context, look suspects) (news bool) {
	living := l.alive.living(ctx, look.unlisted)
	if !l.turn.take(ctx) {
		return false
	}
	l.unlisted = living
	if l.unlistedFound == 0 {
		l.unlistedFound = l.options.Clock.Now().Mono
	}
	l.turn.give()
	return len(living) == 0 || wait.For(ctx, entryLimit/8) == nil
}

// investigate finds out which suspects live. It reports whether another step may have another result.
func (l *liveness) investigate(ctx context.Context, look suspects) (news bool) {
	if !look.recovery.IsZero() {
		return l.findLiving(ctx, look)
	}
	if len(look.unlisted) > 0 {
		return l.findUnlisted(ctx, look)
	}
	for _, client := range look.clients {
		if l.turn.take(ctx) {
			last, seen := l.probed[client]
			now := l.options.Clock.Now().Mono
			known := client == l.alive.id || l.dead[client] || seen && now-last < freshness
			news = news || l.dead[client] // another search has found it since the step
			l.turn.give()
			if known {
				continue
			}
			gone := l.alive.gone(ctx, client)
			if !l.turn.take(ctx) {
				return false
			}
			if gone {
				l.dead[client] = true
				delete(l.probed, client)
				news = true
			} else {
				l.probed[client] = now
			}
			l.turn.give()
		}
	}
	return news
}

// forget drops what is known of clients that are not in the table any more. A client that is gone never comes back:
// what is forgotten here can be found out again.
func (l *liveness) forget(absent func(client string) bool) {
	maps.DeleteFunc(l.dead, func(client string, _ bool) bool { return absent(client) })
	maps.DeleteFunc(l.probed, func(client string, _ time.Duration) bool { return absent(client) })
}
