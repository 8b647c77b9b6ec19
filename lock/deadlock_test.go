package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
)

// place is a path whose acquisition waits without a limit.
func place(path ...string) lock.AcquireOptions {
	return lock.AcquireOptions{Path: path, Backoff: lock.Backoff{MaxRetries: lock.Unlimited}}
}

func shared(o lock.AcquireOptions) lock.AcquireOptions {
	o.Mode = lock.Shared
	return o
}

// ring joins n owners and closes a cycle: each holds a place and waits for the place of the next one.
func (w *world) ring(n int) (owners []*owner, held []lock.Lease, waiting []<-chan outcome) {
	network := locktest.NewNetwork()
	for i := range n {
		o := w.talking(fmt.Sprint(i), network.Join())
		owners, held = append(owners, o), append(held, o.acquire(place(fmt.Sprint(i))))
	}
	for i, o := range owners {
		w.sleep(time.Millisecond) // gives the waiters different ages
		waiting = append(waiting, o.begin(lock.Within(w.Context(), held[i]), place(fmt.Sprint((i+1)%n))))
	}
	return owners, held, waiting
}

func TestOneWaiterOfCycleGetsDeadlock(t *testing.T) {
	for _, n := range []int{2, 3, 8} {
		virtual(t, func(t *testing.T, w *world) {
			owners, held, waiting := w.ring(n)
			closed := time.Since(w.start)
			got := <-waiting[n-1]
			require.ErrorIs(t, got.err, lock.ErrDeadlock, "the one that began last")
			assert.Less(t, got.at-closed, time.Second)
			var e *lock.Error
			require.ErrorAs(t, got.err, &e)
			assert.True(t, e.Retryable())
			assert.Equal(t, lock.EventReadonlyEntered, owners[n-1].last().Type)
			w.sleep(time.Minute)
			for i := range n - 1 {
				assert.Empty(t, waiting[i], "one victim is enough")
			}
			owners[n-1].release(held[n-1])
			for i := n - 2; i >= 0; i-- {
				got := <-waiting[i]
				require.NoError(t, got.err)
				owners[i].release(got.lease)
				owners[i].release(held[i])
			}
			w.mustBeFree()
		})
	}
}

// A cycle within one tab, without any channel.
func TestCycleWithinOneOwner(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		one, two := a.acquire(place("1")), a.acquire(place("2"))
		first := a.begin(lock.Within(t.Context(), one), place("2"))
		w.sleep(time.Millisecond)
		second := a.begin(lock.Within(t.Context(), two), place("1"))
		require.ErrorIs(t, (<-second).err, lock.ErrDeadlock)
		a.release(two)
		got := <-first
		require.NoError(t, got.err)
		a.release(got.lease)
		a.release(one)
	})
}

// A shared request behind an exclusive one waits for all holders of the name, although it is compatible with them.
func TestCycleThroughQueue(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		network := locktest.NewNetwork()
		a, b, c := w.talking("a", network.Join()), w.talking("b", network.Join()), w.talking("c", network.Join())
		reader := a.acquire(shared(place("r")))
		other := c.acquire(place("q"))
		writer := b.begin(t.Context(), place("r"))
		w.sleep(time.Millisecond)
		behind := c.begin(lock.Within(t.Context(), other), shared(place("r")))
		w.sleep(time.Millisecond)
		last := a.begin(lock.Within(t.Context(), reader), place("q"))
		require.ErrorIs(t, (<-last).err, lock.ErrDeadlock)
		a.release(reader)
		b.release((<-writer).lease)
		c.release((<-behind).lease)
		c.release(other)
		w.mustBeFree()
	})
}

// A steal of a place waits for its ancestors behind an exclusive request for one of them, so it can close a cycle too.
func TestCycleThroughStealOfPlace(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		network := locktest.NewNetwork()
		a, b, c := w.talking("a", network.Join()), w.talking("b", network.Join()), w.talking("c", network.Join())
		outer := a.acquire(shared(place("q")))
		reader := c.acquire(shared(place("r")))
		writer := b.begin(t.Context(), place("r"))
		w.sleep(time.Millisecond)
		nested := c.begin(lock.Within(t.Context(), reader), place("q"))
		w.sleep(time.Millisecond)
		steal := place("r", "below")
		steal.Steal = true
		began := time.Since(w.start)
		stealer := <-a.begin(lock.Within(t.Context(), outer), steal)
		require.ErrorIs(t, stealer.err, lock.ErrDeadlock, "the one that began last")
		assert.Less(t, stealer.at-began, time.Second)
		a.release(outer)
		c.release((<-nested).lease)
		c.release(reader)
		b.release((<-writer).lease)
		w.mustBeFree()
	})
}

// A cycle with an acquisition that takes several places at once and has got some of them.
func TestCycleWithPartialAcquisition(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		network := locktest.NewNetwork()
		a, b := w.talking("a", network.Join()), w.talking("b", network.Join())
		two := b.acquire(place("2"))
		both := a.begin(t.Context(), lock.AcquireOptions{Paths: [][]string{{"1"}, {"2"}}, Backoff: lock.Backoff{MaxRetries: lock.Unlimited}})
		w.sleep(time.Millisecond)
		one := b.begin(lock.Within(t.Context(), two), place("1"))
		require.ErrorIs(t, (<-one).err, lock.ErrDeadlock)
		b.release(two)
		a.release((<-both).lease)
		w.mustBeFree()
	})
}

func TestWaitThatEndsByItselfIsNoDeadlock(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		network := locktest.NewNetwork()
		a, b := w.talking("a", network.Join()), w.talking("b", network.Join())
		one, two := a.acquire(place("1")), b.acquire(place("2"))
		// b holds two, but not while it waits: the acquisitions are independent.
		waits := a.begin(lock.Within(t.Context(), one), place("2"))
		independent := b.begin(t.Context(), place("1"))
		w.sleep(time.Minute)
		assert.Empty(t, waits)
		assert.Empty(t, independent)
		b.release(two)
		a.release((<-waits).lease)
		a.release(one)
		b.release((<-independent).lease)
	})
}

func TestSelfWaitIsReportedOnce(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		lease := a.acquire(place("1", "2"))
		waits := a.begin(t.Context(), lock.AcquireOptions{Path: []string{"1"}, Timeout: time.Minute, Backoff: lock.Backoff{MaxRetries: lock.Unlimited}})
		got := <-waits
		require.ErrorIs(t, got.err, lock.ErrTimeout)
		warnings := slices.DeleteFunc(a.seen(), func(e lock.Event) bool { return e.Warning != lock.WarnSelfWait })
		require.Len(t, warnings, 1)
		assert.Contains(t, warnings[0].Detail, lease.ID)
		a.release(lease)

		inside := a.acquire(place("1"))
		_, err := a.Acquire(lock.Within(t.Context(), inside), place("1"))
		require.ErrorIs(t, err, lock.ErrReentrant)
		assert.Equal(t, 1, a.count(lock.EventWarning))
		a.release(inside)
	})
}

// slowChannel delivers messages late and out of order.
type slowChannel struct {
	*locktest.Channel
	random *rand.Rand
	mu     sync.Mutex
}

func (s *slowChannel) Post(m lock.Message) error {
	s.mu.Lock()
	delay := time.Duration(s.random.IntN(20)) * time.Millisecond
	s.mu.Unlock()
	time.AfterFunc(delay, func() { _ = s.Channel.Post(m) })
	return nil
}

// Owners that take places in one order, at once or nested, for random times and with random limits, never form a cycle.
// None of them gets deadlock.
func TestNoVictimWithoutCycle(t *testing.T) {
	runs := 1000
	if testing.Short() {
		runs = 100
	}
	waited := 0
	for seed := range runs {
		virtual(t, func(t *testing.T, w *world) {
			var working sync.WaitGroup
			network := locktest.NewNetwork()
			var owners []*owner
			for id := range 4 {
				random := rand.New(rand.NewPCG(uint64(seed), uint64(id)))
				o := w.talkingOver(fmt.Sprint(id), &slowChannel{Channel: network.Join(), random: rand.New(rand.NewPCG(uint64(seed), uint64(100+id)))})
				owners = append(owners, o)
				working.Go(func() {
					for range 3 {
						o.takesInOrder(random, seed)
					}
				})
			}
			working.Wait()
			for _, o := range owners {
				waited += o.count(lock.EventWaiting)
			}
			w.mustBeFree()
		})
	}
	assert.Greater(t, waited, runs, "there was no deadlock")
}

// takesInOrder takes some of four places, each within the one before, and then releases them.
func (o *owner) takesInOrder(random *rand.Rand, seed int) {
	ctx, held := o.w.Context(), []lock.Lease{}
	for place := range 4 { // in ascending order only
		if random.IntN(2) == 0 {
			continue
		}
		lease, err := o.Acquire(ctx, optionsAt(random, place))
		if errors.Is(err, lock.ErrReentrant) {
			continue
		}
		if err != nil {
			assert.ErrorIs(o.w, err, lock.ErrTimeout, "seed %d", seed)
			break
		}
		held = append(held, lease)
		ctx = lock.Within(ctx, lease)
		time.Sleep(time.Duration(random.IntN(40)) * time.Millisecond)
	}
	for _, l := range slices.Backward(held) {
		o.release(l)
	}
}

// optionsAt returns options for a place: exclusive, shared, one of two slots, or together with a place below the next one.
func optionsAt(random *rand.Rand, place int) lock.AcquireOptions {
	opts := lock.AcquireOptions{Path: []string{fmt.Sprint(place)}, Backoff: lock.Backoff{MaxRetries: lock.Unlimited},
		Timeout: time.Duration(1+random.IntN(60)) * time.Millisecond * time.Duration(1+9*random.IntN(2))}
	switch random.IntN(4) {
	case 0:
		opts.Mode = lock.Shared
	case 1:
		opts.Slots = 2
	}
	if opts.Slots == 0 && random.IntN(3) == 0 && place < 3 {
		opts.Path, opts.Paths = nil, [][]string{{fmt.Sprint(place + 1), "x"}, {fmt.Sprint(place)}}
	}
	return opts
}

func (w *world) talkingOver(id string, c lock.Channel) *owner {
	return w.configured(id, lock.Config{Backends: []lock.Backend{w.backend(id)}, Channel: c})
}

// Random nested acquisitions in any order: every wait ends with a grant or with deadlock, without any time limit.
func TestEveryDeadlockIsResolved(t *testing.T) {
	victims := 0
	for seed := range 200 {
		virtual(t, func(t *testing.T, w *world) {
			var working sync.WaitGroup
			network := locktest.NewNetwork()
			var mu sync.Mutex
			for id := range 5 {
				random := rand.New(rand.NewPCG(uint64(seed), uint64(id)))
				o := w.talkingOver(fmt.Sprint(id), &slowChannel{Channel: network.Join(), random: rand.New(rand.NewPCG(uint64(seed), uint64(100+id)))})
				working.Go(func() {
					for range 3 {
						ctx, held := context.Background(), []lock.Lease{}
						for _, p := range random.Perm(4)[:3] {
							opts := place(fmt.Sprint(p))
							switch random.IntN(4) {
							case 0:
								opts.Mode = lock.Shared
							case 1:
								opts.Slots = 2
							}
							lease, err := o.Acquire(ctx, opts)
							if err != nil {
								assert.ErrorIs(t, err, lock.ErrDeadlock, "seed %d", seed)
								mu.Lock()
								victims++
								mu.Unlock()
								break
							}
							held = append(held, lease)
							ctx = lock.Within(ctx, lease)
							time.Sleep(time.Duration(random.IntN(40)) * time.Millisecond)
						}
						for _, l := range slices.Backward(held) {
							o.release(l)
						}
					}
				})
			}
			working.Wait()
			synctest.Wait()
			w.mustBeFree()
		})
	}
	assert.Greater(t, victims, 100)
}
