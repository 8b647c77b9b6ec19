package locktest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
)

// race lets contenders acquire, release, abort, steal and die until the race is over, in virtual time. open returns the
// Locker of a client.
func race(t *testing.T, over func(w *locktest.Witness) bool, open func(s *locktest.Space, id string) lock.Locker) (violations []string) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		space, records, witness := locktest.NewSpace(), &locktest.Records{}, locktest.NewWitness()
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				random := rand.New(rand.NewPCG(seed, uint64(i)))
				for n := 0; !over(witness); n++ {
					contend(t, random, fmt.Sprintf("%d.%d", i, n), space, records, witness, open)
				}
			})
		}
		all.Wait()
		s, err := space.Client("last").Query(t.Context())
		require.NoError(t, err)
		assert.Empty(t, s.Held)
		assert.Empty(t, s.Pending)
		t.Logf("%d grants", witness.Entries())
		violations = witness.Violations()
	})
	return violations
}

// contend is the life of one client: some turns, then its end, which may be sudden.
func contend(t *testing.T, random *rand.Rand, id string, space *locktest.Space, records *locktest.Records, witness *locktest.Witness,
	open func(*locktest.Space, string) lock.Locker) {
	m, err := lock.NewManager(lock.Config{Backends: []lock.Backend{{Strategy: lock.WebLock, Resource: "r", Locker: open(space, id), Records: records}}})
	require.NoError(t, err)
	turns := 1 + random.IntN(20)
	for n := range turns {
		turn := fmt.Sprintf("%s/%d", id, n)
		steal := random.IntN(20) == 0
		ctx, stop := context.WithCancel(t.Context())
		if random.IntN(10) == 0 {
			time.AfterFunc(time.Duration(random.IntN(20))*time.Millisecond, stop)
		}
		witness.Begin(turn, steal)
		lease, err := m.Acquire(ctx, lock.AcquireOptions{Steal: steal, Timeout: 20 * time.Second, Backoff: lock.Backoff{MaxRetries: lock.Unlimited}})
		stop()
		if errors.Is(err, lock.ErrTimeout) {
			witness.Forgotten(turn)
		}
		if err != nil {
			witness.Fail(turn)
			continue
		}
		if witness.Enter(turn, lease.Token) {
			time.Sleep(time.Duration(random.IntN(5)) * time.Millisecond)
		}
		if n == turns-1 && random.IntN(2) == 0 { // its end
			witness.End(turn)
			space.Kill(id)
		}
		witness.Leave(turn)
		_ = lease.Release(context.WithoutCancel(t.Context()))
	}
	require.NoError(t, m.Close(context.WithoutCancel(t.Context())))
}

func TestRace(t *testing.T) {
	enough := func(w *locktest.Witness) bool { return w.Entries() >= 10_000 }
	violations := race(t, enough, func(s *locktest.Space, id string) lock.Locker { return s.Client(id) })
	assert.Empty(t, violations)
}

// The race finds a Locker that sometimes grants twice, and one that forgets a waiter. Both faults come by chance, and
// the witness overlooks some double grants, those beside a steal for example: the race goes on until the fault is found.
func TestRaceFindsFaults(t *testing.T) {
	for name, c := range map[string]struct {
		request func(l *locktest.Locker, ctx context.Context, r lock.Request) (lock.Grant, error)
		found   string
	}{
		"grants twice": {func(l *locktest.Locker, ctx context.Context, r lock.Request) (lock.Grant, error) {
			if !r.Steal && rand.IntN(50) == 0 {
				r.Wants = []lock.Want{{Name: "another", Mode: lock.Exclusive}}
			}
			return l.Request(ctx, r)
		}, "double holder"},
		"forgets": {func(l *locktest.Locker, ctx context.Context, r lock.Request) (lock.Grant, error) {
			if !r.Steal && !r.IfAvailable && rand.IntN(50) == 0 {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			return l.Request(ctx, r)
		}, "left behind"},
	} {
		t.Run(name, func(t *testing.T) {
			found := func(violations []string) bool { return strings.Contains(strings.Join(violations, "\n"), c.found) }
			over := func(w *locktest.Witness) bool { return w.Entries() >= 1_000_000 || found(w.Violations()) }
			violations := race(t, over, func(s *locktest.Space, id string) lock.Locker {
				return requestFunc{s.Client(id), c.request}
			})
			assert.True(t, found(violations), violations)
		})
	}
}

type requestFunc struct {
	*locktest.Locker
	request func(*locktest.Locker, context.Context, lock.Request) (lock.Grant, error)
}

func (f requestFunc) Request(ctx context.Context, r lock.Request) (lock.Grant, error) {
	return f.request(f.Locker, ctx, r)
}
