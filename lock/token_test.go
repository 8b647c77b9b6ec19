package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

// coarse is a clock that ticks every grain, as a browser's clock does.
type coarse struct{ grain time.Duration }

func (c coarse) Now() lock.Instant {
	now := lock.SystemClock{}.Now()
	now.Wall = now.Wall.Truncate(c.grain)
	return now
}

// frozen is a wall clock that stands still.
type frozen struct{}

func (frozen) Now() lock.Instant {
	return lock.Instant{Wall: time.UnixMilli(1_000_000), Mono: lock.SystemClock{}.Now().Mono}
}

func TestTokensRise(t *testing.T) {
	t.Run("records", func(t *testing.T) {
		virtual(t, func(t *testing.T, w *world) {
			w.risingTokens(t, 1000, func() lock.Records { return w.records })
		})
	})
	// Every tab has its own WallTokens, because tabs share no state.
	for grain, grants := range map[time.Duration]int{time.Millisecond: 1000, 17 * time.Millisecond: 1000, 100 * time.Millisecond: 200} {
		t.Run("wall clock of "+grain.String(), func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				w.risingTokens(t, grants, func() lock.Records { return &lock.WallTokens{Clock: coarse{grain}} })
			})
		})
	}
	t.Run("frozen wall clock, one tab", func(t *testing.T) {
		virtual(t, func(t *testing.T, w *world) {
			one := &lock.WallTokens{Clock: frozen{}}
			w.risingTokens(t, 200, func() lock.Records { return one })
		})
	})
}

// risingTokens makes grants in four tabs, every tenth of them stolen, and compares
// each token with the one before it.
func (w *world) risingTokens(t *testing.T, grants int, records func() lock.Records) {
	last := int64(0)
	var tabs []*owner
	for _, id := range []string{"a", "b", "c", "d"} {
		b := w.backend(id)
		b.Records = records()
		tabs = append(tabs, w.join(id, b))
	}
	for i := range grants {
		lease := tabs[i%len(tabs)].acquire(lock.AcquireOptions{Steal: i%10 == 0})
		if !assert.Greater(t, lease.Token, last, "grant %d", i) {
			t.FailNow()
		}
		last = lease.Token
		if i%10 != 9 { // the next one steals it
			assert.NoError(t, lease.Release(t.Context()))
		}
	}
}

// A steal in the very millisecond of the victim's grant still gets the greater token.
func TestStolenTokenIsGreater(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		victim, stealer := &lock.WallTokens{Clock: w.clock}, &lock.WallTokens{Clock: w.clock}
		tokens := make(chan int64, 1)
		go func() {
			token, err := victim.Claim(t.Context(), lock.Record{}, false)
			assert.NoError(t, err)
			tokens <- token
		}()
		token, err := stealer.Claim(t.Context(), lock.Record{}, true)
		assert.NoError(t, err)
		assert.Greater(t, token, <-tokens)
	})
}

// Leases of places have no record. Their tokens rise from holder to holder nevertheless, and cost no time unless the
// lock is released within the same tick.
func TestTokensOfPlacesRise(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b := w.tab("a"), w.tab("b")
		last := int64(0)
		for i := range 200 {
			who := []*owner{a, b}[i%2]
			began := time.Now()
			lease := who.acquire(lock.AcquireOptions{Path: []string{"u1"}})
			assert.Greater(t, lease.Token, last)
			last = lease.Token
			if i%3 == 0 {
				time.Sleep(2 * time.Millisecond)
				began = began.Add(2 * time.Millisecond)
				who.release(lease)
				assert.Equal(t, began, time.Now())
				continue
			}
			who.release(lease)
		}
		one, two := a.acquire(lock.AcquireOptions{Path: []string{"pool"}, Slots: 2}), a.acquire(lock.AcquireOptions{Path: []string{"pool"}, Slots: 2})
		assert.Greater(t, two.Token, one.Token)
		a.release(one)
		a.release(two)
	})
}

// A lease is released, with a nested lease, in the millisecond in which the nested lease began. The next holder gets a greater token than both.
func TestTokenExceedsThatOfNestedLease(t *testing.T) {
	for _, test := range []struct {
		name    string
		path    []string
		records lock.Records
	}{
		{"place", []string{"u1"}, nil},
		{"project without records", nil, nil},
		{"project", nil, &aheadRecords{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				var tabs [2]*owner
				for i, id := range []string{"a", "b"} {
					b := w.backend(id)
					b.Records = test.records
					tabs[i] = w.join(id, b)
				}
				outer := tabs[0].acquire(lock.AcquireOptions{Path: test.path})
				time.Sleep(10 * time.Millisecond)
				nested, err := tabs[0].Acquire(lock.Within(t.Context(), outer), lock.AcquireOptions{Path: []string{"u1", "a1"}})
				require.NoError(t, err)
				tabs[0].release(outer)
				next := tabs[1].acquire(lock.AcquireOptions{Path: test.path})
				assert.Greater(t, next.Token, nested.Token)
				tabs[1].release(next)
			})
		})
	}
}

// Setting the clock back does not lower the tokens of places within one page. Another page cannot know the earlier
// tokens.
func TestPlaceTokensRiseAfterClockSetBack(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		last := int64(0)
		for i := range 10 {
			if i == 5 {
				w.clock.SetWall(-time.Hour)
			}
			lease := a.acquire(lock.AcquireOptions{Path: []string{"u1"}})
			assert.Greater(t, lease.Token, last)
			last = lease.Token
			a.release(lease)
		}
	})
}

// The clock is set back a little while a tab holds a place. The release waits until the clock is past the token, so the next tab
// gets a greater one.
func TestPlaceTokensRiseBetweenTabsAfterSmallClockSetBack(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b := w.tab("a"), w.tab("b")
		first := a.acquire(lock.AcquireOptions{Path: []string{"u1"}})
		w.clock.SetWall(-50 * time.Millisecond)
		a.release(first)
		second := b.acquire(lock.AcquireOptions{Path: []string{"u1"}})
		assert.Greater(t, second.Token, first.Token)
		b.release(second)
	})
}

// lateGrant reports its loss only when Look is called.
type lateGrant struct {
	lock.Grant
	lost chan struct{}
}

func (g *lateGrant) Lost() <-chan struct{} { return g.lost }

func (g *lateGrant) Look(context.Context, lock.Instant) error {
	select {
	case <-g.Grant.Lost():
		close(g.lost)
	default:
	}
	return nil
}

// A client whose lock is stolen before its lease has a token would get a higher token than the new holder. Such a grant
// becomes no lease, even if the Locker has not reported the loss yet.
func TestGrantStolenBeforeTokenMakesNoLease(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		place := lock.AcquireOptions{Path: []string{"u1"}}
		stealer, b := w.tab("stealer"), w.backend("a")
		here, stolen := b.Locker, lock.Lease{}
		b.Locker = lockerFunc(func(ctx context.Context, r lock.Request) (lock.Grant, error) {
			g, err := here.Request(ctx, r)
			if err != nil || stolen.ID != "" || r.Wants[len(r.Wants)-1].Mode != lock.Exclusive {
				return g, err
			}
			steal := place
			steal.Steal = true
			stolen = stealer.acquire(steal)
			time.Sleep(10 * time.Millisecond)
			return &lateGrant{g, make(chan struct{})}, nil
		})
		denied := w.join("a", b).begin(t.Context(), place)
		w.sleep(time.Second)
		require.NoError(t, stolen.Err())
		select {
		case o := <-denied:
			require.Fail(t, "two leases", "%v", o)
		default:
		}
		stealer.release(stolen)
		o := <-denied
		require.NoError(t, o.err)
		assert.Greater(t, o.lease.Token, stolen.Token)
		require.NoError(t, o.lease.Release(t.Context()))
	})
}

// A caller gives up just as its grant turns out to be stolen. It gets an answer instead of waiting on.
func TestCallerGivesUpAsGrantIsStolen(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		for code, end := range map[lock.Code]func(abort func()){
			lock.CodeTimeout: func(func()) { time.Sleep(time.Minute) },
			lock.CodeAborted: func(abort func()) { abort() },
		} {
			ctx, abort := context.WithCancel(t.Context())
			defer abort()
			b := w.backend("a")
			b.Locker = lockerFunc(func(context.Context, lock.Request) (lock.Grant, error) {
				return &stolenGrant{func() { end(abort) }, make(chan struct{})}, nil
			})
			o := <-w.join("a", b).begin(ctx, lock.AcquireOptions{Path: []string{"u1"}, Timeout: time.Minute})
			require.ErrorIs(t, o.err, &lock.Error{Code: code})
		}
	})
}

// stolenGrant turns out to be stolen at the end of an operation.
type stolenGrant struct {
	end  func()
	lost chan struct{}
}

func (g *stolenGrant) Release(context.Context) error { return nil }
func (g *stolenGrant) Lost() <-chan struct{}         { return g.lost }

func (g *stolenGrant) Look(context.Context, lock.Instant) error {
	g.end()
	close(g.lost)
	return nil
}

// Several shared leases of one tab in one millisecond have tokens ahead of the clock. A writer of another tab that
// comes after them still gets a greater token.
func TestWriterTokenExceedsTokensOfSharedLeases(t *testing.T) {
	for name, grain := range map[string]time.Duration{"fine clock": time.Millisecond, "coarse clock": 20 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				readers, writer := &lock.WallTokens{Clock: coarse{grain}}, &lock.WallTokens{Clock: coarse{grain}}
				tokens := make(chan int64, 8)
				for range cap(tokens) {
					go func() {
						token, err := readers.Claim(t.Context(), lock.Record{}, false)
						assert.NoError(t, err)
						tokens <- token
					}()
				}
				highest := int64(0)
				for range cap(tokens) {
					highest = max(highest, <-tokens)
				}
				token, err := writer.Claim(t.Context(), lock.Record{}, false)
				require.NoError(t, err)
				assert.Greater(t, token, highest)
			})
		})
	}
}

// A store knows a later token than the records, which were lost.
func TestTokenExceedsAfter(t *testing.T) {
	for name, records := range map[string]func(w *world) lock.Records{
		"records":    func(w *world) lock.Records { return w.records },
		"wall clock": func(*world) lock.Records { return &lock.WallTokens{Clock: frozen{}} },
		"spare": func(w *world) lock.Records {
			w.records.OnClaim = func(lock.Record) error { return lock.ErrUnsupported }
			return lock.WithFallback(w.records, &lock.WallTokens{Clock: frozen{}}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				b := w.backend("a")
				b.Records = records(w)
				a := w.join("a", b)
				const known = 1 << 50
				lease, err := a.Acquire(t.Context(), lock.AcquireOptions{After: known})
				require.NoError(t, err)
				assert.Greater(t, lease.Token, int64(known))
				require.NoError(t, lease.Release(t.Context()))
				next, err := a.Acquire(t.Context(), lock.AcquireOptions{})
				require.NoError(t, err)
				assert.Greater(t, next.Token, lease.Token)
			})
		})
	}
}
