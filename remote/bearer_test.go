package remote_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/remote"
)

// page is the page's function for tokens.
type page struct {
	mu    sync.Mutex
	text  string
	err   error
	pause time.Duration
	hangs bool
	calls int
}

func (p *page) token(ctx context.Context) (string, error) {
	p.mu.Lock()
	p.calls++
	text, err, pause, hangs := p.text, p.err, p.pause, p.hangs
	p.mu.Unlock()
	time.Sleep(pause)
	if hangs {
		<-ctx.Done()
		return "", context.Cause(ctx)
	}
	return text, err
}

func (p *page) set(change func(*page)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

func (p *page) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// accept makes the server know the bearers of these tokens alone.
func (n *internet) accept(tokens ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.users = make(map[string]bool)
	for _, token := range tokens {
		n.users[token] = true
	}
}

// signed is a machine whose page gives tokens.
func (n *internet) signed(session string, p *page) machine {
	m := n.machineWith(session, autosavetest.NewDisk(), func(c *remote.Config) { c.Token = p.token })
	m.storage = autosavetest.NewDraftStorage()
	return m
}

// typist is the editor of a page whose token the server accepts. Its first text is saved.
func (n *internet) typist(t *testing.T, p *page) *writer {
	t.Helper()
	n.accept(p.text)
	w := n.signed("A", p).writer(t, "A")
	w.type_("first, ")
	sleep(time.Second)
	return w
}

func (m machine) manager(t *testing.T) *lock.Manager {
	t.Helper()
	manager, err := lock.NewManager(lock.Config{OwnerID: "A", Backends: []lock.Backend{m.document.Backend()}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = manager.Close(context.Background()) })
	return manager
}

// The page is asked for a token once, and again when the server refuses that one. Nobody notices.
func TestTokenIsRenewedWhenRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		p := &page{text: "one"}
		w := n.typist(t, p)
		sleep(time.Minute)
		require.False(t, w.State().ReadOnly)
		assert.Equal(t, "first, ", string(n.content))
		assert.Equal(t, 1, p.asked())

		for i := range 3 {
			token := strconv.Itoa(i)
			n.accept(token)
			p.set(func(p *page) { p.text = token })
			w.type_("more, ")
			sleep(time.Minute)
		}
		assert.False(t, w.State().ReadOnly)
		assert.Empty(t, w.readonly)
		assert.Equal(t, "first, more, more, more, ", string(n.content))
		assert.Equal(t, 4, p.asked())
	})
}

// Requests that are refused at the same time share one question to the page.
func TestConcurrentRequestsShareOneToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		n.accept("one")
		p := &page{text: "one", pause: time.Second}
		m := n.signed("A", p).manager(t)
		acquireAll := func() {
			var all sync.WaitGroup
			for i := range 20 {
				all.Go(func() {
					lease, err := m.Acquire(context.Background(), lock.AcquireOptions{Path: []string{"p" + strconv.Itoa(i)}})
					if assert.NoError(t, err) {
						assert.NoError(t, lease.Release(context.Background()))
					}
				})
			}
			all.Wait()
		}
		acquireAll()
		assert.Equal(t, 1, p.asked())
		n.accept("two")
		p.set(func(p *page) { p.text = "two" })
		acquireAll()
		assert.Equal(t, 2, p.asked())
	})
}

// A token that was good once may expire as soon as it has been used once more: the page is asked again each time.
func TestTokensThatExpireOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		n.accept("0")
		p := &page{text: "0"}
		m := n.signed("A", p).manager(t)
		for i := range 4 {
			text := strconv.Itoa(i)
			n.accept(text)
			p.set(func(p *page) { p.text = text })
			// The request that follows the renewal is the only one with this token.
			_, err := m.Acquire(context.Background(), lock.AcquireOptions{Path: []string{text}})
			require.NoError(t, err, "token %d", i)
			assert.Equal(t, i+1, p.asked())
		}
	})
}

// The longest token, and the first and the last character that a header can carry.
func TestTokensThatAHeaderCanCarry(t *testing.T) {
	for _, text := range []string{strings.Repeat("x", 8192), "!~"} {
		synctest.Test(t, func(t *testing.T) {
			n := newInternet()
			n.accept(text)
			_, err := n.signed("A", &page{text: text}).manager(t).Acquire(context.Background(), lock.AcquireOptions{})
			assert.NoError(t, err)
		})
	}
}

// The server refuses the fresh token as well, or the page gives the refused one again: that is final.
func TestRefusedTokenIsFinal(t *testing.T) {
	for name, fresh := range map[string]string{"another one": "other-secret", "the same one": "secret"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newInternet()
				p := &page{text: "secret"}
				w := n.typist(t, p)
				n.accept()
				p.set(func(p *page) { p.text = fresh })
				w.type_("refused")
				_, err := w.FlushNow(context.Background())
				require.ErrorIs(t, err, lock.ErrNotAllowed)
				assert.NotContains(t, err.Error(), "secret")
				sleep(time.Second)
				require.True(t, w.State().ReadOnly)
				left, err := w.Drafts(context.Background())
				require.NoError(t, err)
				assert.Len(t, left, 1)
				asked := p.asked()
				sleep(10 * time.Minute)
				assert.LessOrEqual(t, p.asked()-asked, 2, "the user is not asked repeatedly")

				n.accept("good")
				p.set(func(p *page) { p.text = "good" })
				require.NoError(t, w.RequestEdit(context.Background(), autosave.EditOptions{}))
				sleep(time.Second)
				assert.Equal(t, "first, refused", string(n.content))
			})
		})
	}
}

// A function that gives no token ends each call in time, with a code and a reason. The server gets no request without a token.
func TestPageThatGivesNoToken(t *testing.T) {
	for name, c := range map[string]struct {
		page *page
		code lock.Code
		why  string
		most time.Duration
	}{
		"throws":              {&page{err: errors.New("the sign-in service is down")}, lock.CodeTimeout, "the sign-in service is down", 30 * time.Second},
		"never settles":       {&page{hangs: true}, lock.CodeTimeout, "server.token has not settled", 60 * time.Second},
		"is empty":            {&page{}, lock.CodeNotAllowed, "server.token must return", 0},
		"is no header":        {&page{text: "a\r\nHost: b"}, lock.CodeNotAllowed, "server.token must return", 0},
		"is no text":          {&page{text: "a\x7f"}, lock.CodeNotAllowed, "server.token must return", 0},
		"is no single word":   {&page{text: "Bearer x"}, lock.CodeNotAllowed, "server.token must return", 0},
		"is longer than 8 KB": {&page{text: strings.Repeat("x", 8193)}, lock.CodeNotAllowed, "server.token must return", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newInternet()
				m := n.signed("A", c.page).manager(t)
				for _, opts := range []lock.AcquireOptions{{}, {IfAvailable: true}, {Path: []string{"a"}}} {
					began := time.Now()
					_, err := m.Acquire(context.Background(), opts)
					var e *lock.Error
					require.ErrorAs(t, err, &e)
					assert.Equal(t, c.code, e.Code)
					assert.Contains(t, err.Error(), c.why)
					assert.LessOrEqual(t, time.Since(began), c.most)
					sleep(10 * time.Second) // what was given up leaves the queue
				}
				assert.Empty(t, n.requests())
				sleep(2 * time.Minute) // the page is not waited for any longer
			})
		})
	}
}

// A function that fails for a while costs nothing but that time, as a network does that fails.
func TestTokenFunctionRecovers(t *testing.T) {
	for name, fail := range map[string]func(*page){
		"throws": func(p *page) { p.err = errors.New("offline") },
		"hangs":  func(p *page) { p.hangs = true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newInternet()
				p := &page{text: "one"}
				w := n.typist(t, p)
				n.accept("two")
				p.set(func(p *page) { p.text = "two"; fail(p) })
				w.type_("second")
				sleep(3 * time.Minute)
				assert.True(t, w.State().ReadOnly, "its lease has run out")
				require.NotErrorIs(t, w.State().LastErr, lock.ErrNotAllowed)
				p.set(func(p *page) { p.err, p.hangs = nil, false })
				sleep(3 * time.Minute)
				assert.False(t, w.State().ReadOnly, "it goes on by itself")
				assert.Equal(t, "first, second", string(n.content))
				sleep(2 * time.Minute) // no question to the page is left
			})
		})
	}
}

// A page that edits listens for questions with the token of the moment.
func TestSocketBearsTheToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		n.accept("one")
		p := &page{text: "one"}
		h := n.home("A")
		h.token = p.token
		h.tab(t, "a")
		sleep(time.Second)
		require.Equal(t, 1, n.connections())
		n.accept("two")
		p.set(func(p *page) { p.text = "two" })
		n.cut() // as the server does when the token expires
		sleep(30 * time.Second)
		assert.Equal(t, 1, n.connections(), "with the token that a heartbeat has renewed")
		assert.Equal(t, 2, p.asked())
	})
}

// In any order of expiring tokens and requests, no request fails while the page can give a valid token, and the page
// is asked at most once for each token that expired.
func TestRandomExpiriesAndRequests(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			n := newInternet()
			p := &page{text: "0", pause: time.Duration(random.IntN(50)) * time.Millisecond}
			n.accept("0")
			n.delay = func(remote.Request) bool {
				n.mu.Lock()
				pause := time.Duration(random.IntN(100)) * time.Millisecond
				n.mu.Unlock()
				time.Sleep(pause)
				return false
			}
			m := n.signed("A", p).manager(t)
			expired := 1 + random.IntN(5)
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					for range 5 {
						lease, err := m.Acquire(context.Background(), lock.AcquireOptions{Path: []string{"p" + strconv.Itoa(i)}})
						if !assert.NoError(t, err, "seed %d", seed) {
							return
						}
						assert.NoError(t, lease.Release(context.Background()))
					}
				})
			}
			for i := range expired {
				time.Sleep(time.Second)
				n.accept(strconv.Itoa(i + 1))
				p.set(func(p *page) { p.text = strconv.Itoa(i + 1) })
			}
			all.Wait()
			assert.LessOrEqual(t, p.asked(), 1+expired, "seed %d", seed)
		})
	}
}
