package remote_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
	"github.com/holdfast-dev/holdfast/remote"
)

// post delays the next matching request until the test releases it: the network delivers it although its client has
// abandoned it.
type post struct {
	mu   sync.Mutex
	what string // the method and a part of the path of the request to hold back; "" for none
	let  chan struct{}
	held bool
}

func holdBack(n *internet) *post {
	p := &post{let: make(chan struct{})}
	n.delay = func(r remote.Request) bool {
		p.mu.Lock()
		late := p.what != "" && strings.Contains(r.Method+" "+r.Path, p.what)
		if late {
			p.what, p.held = "", true
		}
		p.mu.Unlock()
		if late {
			<-p.let
		}
		return late
	}
	return p
}

func (p *post) next(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what = what
}

// deliver releases the delayed request.
func (p *post) deliver(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	held := p.held
	p.mu.Unlock()
	require.True(t, held)
	close(p.let)
	synctest.Wait()
}

// targets are the kinds of leases that a tab has on the server.
var targets = map[string]lock.AcquireOptions{
	"document": {}, "place": at("x"), "several": {Paths: [][]string{{"x"}, {"y"}}}, "shared": shared("x"), "slots": {Path: []string{"x"}, Slots: 2},
}

// eachTarget runs a test for each kind of lease, but for those that it excepts.
func eachTarget(t *testing.T, test func(t *testing.T, opts lock.AcquireOptions), except ...string) {
	for target, opts := range targets {
		if slices.Contains(except, target) {
			continue
		}
		t.Run(target, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, opts) })
		})
	}
}

// A tab gives up, and its request arrives when another tab of the browser holds the lock. That tab keeps the lock, and
// another machine gets no grant.
func TestLateRequestTouchesNoOtherAcquisition(t *testing.T) {
	for target, opts := range targets {
		for _, what := range []string{"POST", "DELETE", "PUT"} {
			t.Run(what+" of "+target, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n, space := newInternet(), locktest.NewSpace()
					a, b := open(t, n, space, "A", "a"), open(t, n, space, "A", "b")
					late := holdBack(n)
					late.next(what)
					first := opts
					first.Timeout = time.Second
					lease, err := a.Acquire(context.Background(), first)
					if what == "DELETE" {
						require.NoError(t, err)
						_ = lease.Release(context.Background())
					} else {
						require.ErrorIs(t, err, lock.ErrTimeout)
					}
					sleep(10 * time.Second)

					second := b.acquire(waits(opts))
					late.deliver(t)
					held := n.places()
					assert.Len(t, held, 1)
					other := opts
					other.Slots, other.IfAvailable, other.Mode = 0, true, lock.Exclusive
					_, err = open(t, n, locktest.NewSpace(), "B", "c").Acquire(context.Background(), other)
					require.ErrorIs(t, err, lock.ErrDenied)
					sleep(time.Minute)
					require.NoError(t, second.Err())
					assert.Equal(t, held, n.places())
					b.release(second)
					assert.Empty(t, n.places())
				})
			})
		}
	}
}

// A page on its first visit gives up before its first answer arrives. Its browser has no session yet, so the server
// cannot see that both requests come from one browser. Nothing stays on the server, whichever request arrives first.
func TestFirstVisitThatGivesUp(t *testing.T) {
	for target, opts := range targets {
		for _, what := range []string{"POST", "nothing"} {
			t.Run(target+", held back: "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newInternet()
					visitor := open(t, n, locktest.NewSpace(), "", "a")
					late := holdBack(n)
					late.next(what)
					n.answer = func(r remote.Request) error {
						if r.Method == "POST" {
							return errOffline // the answer and its cookie are lost
						}
						return nil
					}
					opts := opts
					opts.Timeout = time.Second
					_, err := visitor.Acquire(t.Context(), opts)
					require.ErrorIs(t, err, lock.ErrTimeout)
					if what == "POST" {
						late.deliver(t)
					}
					sleep(time.Second)
					assert.Empty(t, n.places())
				})
			})
		}
		t.Run(target+", granted", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newInternet()
				visitor := open(t, n, locktest.NewSpace(), "", "a")
				lease := visitor.acquire(opts)
				assert.Len(t, n.places(), 1)
				visitor.release(lease)
				assert.Empty(t, n.places())
			})
		})
	}
}

// The server grants nothing to a browser that sends no cookie. The error names the reason at once.
func TestBrowserWithoutCookies(t *testing.T) {
	eachTarget(t, func(t *testing.T, opts lock.AcquireOptions) {
		n := newInternet()
		visitor := open(t, n, locktest.NewSpace(), "", "a")
		visitor.browser.blocked = true
		began := time.Now()
		_, err := visitor.Acquire(t.Context(), waits(opts))
		require.ErrorIs(t, err, lock.ErrUnsupported)
		require.ErrorContains(t, err, "cookie")
		assert.Less(t, time.Since(began), time.Second)
		assert.Empty(t, n.places())
	})
}

// An acquisition that is abandoned before its answer arrives leaves nothing on the server.
func TestGivenUpWhileTheAnswerIsUnderWay(t *testing.T) {
	for target, opts := range targets {
		for _, ifAvailable := range []bool{false, true} {
			name := target
			if ifAvailable {
				name += ", if available"
			}
			opts := opts
			opts.IfAvailable = ifAvailable
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newInternet()
					a := open(t, n, locktest.NewSpace(), "A", "a")
					ctx, abort := context.WithCancel(t.Context())
					a.browser.onGrant = func() { a.browser.onGrant = nil; abort() }
					_, err := a.Acquire(ctx, opts)
					require.ErrorIs(t, err, lock.ErrAborted)
					sleep(time.Second)
					assert.Empty(t, n.places())
				})
			})
			t.Run(name+", answer lost", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newInternet()
					a := open(t, n, locktest.NewSpace(), "A", "a")
					n.answer = func(r remote.Request) error {
						if r.Method == "POST" {
							return errOffline
						}
						return nil
					}
					opts := opts
					opts.Timeout = lock.NoWait
					_, err := a.Acquire(t.Context(), opts)
					require.ErrorIs(t, err, lock.ErrTimeout)
					sleep(time.Second)
					assert.Empty(t, n.places())
				})
			})
		}
	}
}

// If the server cannot be reached either, it receives the end with the next request that it answers; its lease ends by
// itself.
func TestGivenUpWhileServerIsUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := open(t, n, locktest.NewSpace(), "A", "a")
		n.answer = func(remote.Request) error { n.set(true); return errOffline }
		_, err := a.Acquire(t.Context(), lock.AcquireOptions{Path: []string{"x"}, IfAvailable: true})
		require.ErrorIs(t, err, lock.ErrTimeout)
		n.answer = nil
		assert.Len(t, n.places(), 1)
		n.set(false)
		a.release(a.acquire(at("y")))
		assert.Empty(t, n.places())
	})
}

// A release that did not reach the server is sent with the next request that it answers.
func TestReleaseWhileServerIsUnreachable(t *testing.T) {
	eachTarget(t, func(t *testing.T, opts lock.AcquireOptions) {
		n := newInternet()
		a := open(t, n, locktest.NewSpace(), "A", "a")
		lease := a.acquire(opts)
		n.set(true)
		require.ErrorIs(t, lease.Release(t.Context()), lock.ErrReleaseFailed)
		n.set(false)
		next := a.acquire(at("elsewhere"))
		assert.Len(t, n.places(), 1)
		a.release(next)
		assert.Empty(t, n.places())
	})
}

// A server whose locks last longer than usual keeps the lock longer, so the release is due for longer, also if the connection fails
// again during the request that would bring it.
func TestReleaseAfterALongTimeUnreachable(t *testing.T) {
	eachTarget(t, func(t *testing.T, opts lock.AcquireOptions) {
		n := newInternet()
		n.ttl = 10 * time.Minute
		a := open(t, n, locktest.NewSpace(), "A", "a")
		lease := a.acquire(opts)
		n.set(true)
		require.ErrorIs(t, lease.Release(t.Context()), lock.ErrReleaseFailed)
		sleep(time.Minute)
		n.set(false)
		n.answer = func(remote.Request) error { n.set(true); return nil }
		_, err := a.Acquire(t.Context(), lock.AcquireOptions{Path: []string{"elsewhere"}, IfAvailable: true})
		require.ErrorIs(t, err, lock.ErrTimeout)
		sleep(time.Minute)
		n.answer = nil
		n.set(false)
		a.release(a.acquire(at("elsewhere")))
		assert.Empty(t, n.places())
	})
}

// Browsers send one cookie from two origins of a site. Each origin has its own locks between its tabs.
func TestOriginsOfOneBrowserExcludeEachOther(t *testing.T) {
	eachTarget(t, func(t *testing.T, opts lock.AcquireOptions) {
		n := newInternet()
		a, b := open(t, n, locktest.NewSpace(), "A", "a"), open(t, n, locktest.NewSpace(), "A", "b")
		a.browser.origin, b.browser.origin = "https://one.example", "https://two.example"
		first := a.acquire(opts)
		waiting := b.begin(t.Context(), waits(opts))
		sleep(time.Minute)
		assert.Empty(t, waiting)
		require.NoError(t, first.Err())
		a.release(first)
		require.NoError(t, <-waiting)
	}, "shared", "slots") // two hold it at once
}

// A tab of the browser has died with its lock. The next tab replaces that lease, and no other.
func TestDeadTabIsReplacedAtOnce(t *testing.T) {
	eachTarget(t, func(t *testing.T, opts lock.AcquireOptions) {
		n, space := newInternet(), locktest.NewSpace()
		dead := open(t, n, space, "A", "a")
		lease := dead.acquire(opts)
		space.Kill("a")
		dead.browser.net = newInternet() // none of its requests arrives
		next := lock.AcquireOptions{Path: opts.Path, Paths: opts.Paths, IfAvailable: true}
		assert.Greater(t, open(t, n, space, "A", "b").acquire(next).Token, lease.Token)
		assert.Len(t, n.places(), 1)
	}, "slots") // without a lock between slots nothing shows that the tab is gone
}

// lateStealLocker is the lock between the tabs for a page that wakes: the page learns of a steal with the answer to the next
// query.
type lateStealLocker struct {
	lock.Locker
	mu     sync.Mutex
	grants []*dozingGrant
}

type dozingGrant struct {
	lock.Grant
	lost chan struct{}
	once sync.Once
}

func (g *dozingGrant) Lost() <-chan struct{} { return g.lost }

func (d *lateStealLocker) Request(ctx context.Context, r lock.Request) (lock.Grant, error) {
	g, err := d.Locker.Request(ctx, r)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	own := &dozingGrant{Grant: g, lost: make(chan struct{})}
	d.grants = append(d.grants, own)
	return own, nil
}

func (d *lateStealLocker) Query(ctx context.Context) (lock.Snapshot, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, g := range d.grants {
		if wait.Closed(g.Grant.Lost()) {
			g.once.Do(func() { close(g.lost) })
		}
	}
	return d.Locker.Query(ctx)
}

// A tab asks for a lease that another tab left behind, and freezes. A third tab steals the lock between the tabs and
// acquires on the server. When the first one wakes, it receives an answer that names the third tab's lease, and
// replaces nothing.
func TestFrozenTabReplacesNothingWhenItWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, space := newInternet(), locktest.NewSpace()
		a, b := openAt(t, n, &lateStealLocker{Locker: space.Client("a")}, "A", "a"), open(t, n, space, "A", "b")
		late := holdBack(n)
		late.next("POST")
		woken := make(chan struct{})
		a.browser.onReply = func(remote.Reply) { a.browser.onReply = nil; <-woken }
		waiting := a.begin(t.Context(), lock.AcquireOptions{Timeout: 10 * time.Minute, IfAvailable: true})
		stealer := b.acquire(lock.AcquireOptions{Steal: true})
		late.deliver(t)
		close(woken)
		require.Error(t, <-waiting)
		sleep(time.Minute)
		require.NoError(t, stealer.Err())
		assert.Equal(t, "A", n.held())
	})
}

// A page may be newer than its server. It accepts no grant from a server that does not know tickets.
func TestServerThatDoesNotKnowTickets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		now := time.Now()
		n.refuse = remote.Reply{Status: 200, Token: 7, LockedAt: now, ExpiresAt: now.Add(n.ttl)}
		_, err := open(t, n, locktest.NewSpace(), "A", "a").Acquire(t.Context(), lock.AcquireOptions{})
		require.ErrorIs(t, err, lock.ErrUnsupported)
		assert.ErrorContains(t, err, "update the server")
	})
}
