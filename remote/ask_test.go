package remote_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
	"github.com/holdfast-dev/holdfast/remote"
)

// home is one browser with several tabs.
type home struct {
	n       *internet
	session string
	space   *locktest.Space
	network *autosavetest.Network
	disk    *autosavetest.Disk
	token   func(context.Context) (string, error) // of the user; may be nil
}

func (n *internet) home(session string) *home {
	return &home{n, session, locktest.NewSpace(), autosavetest.NewNetwork(), autosavetest.NewDisk(), nil}
}

// tab opens a page whose channel reaches the other tabs and the server.
func (h *home) tab(t *testing.T, name string, change ...func(*autosave.Config)) *writer {
	m := h.machine(name, autosave.NewLayout(h.disk.Client(), autosavetest.SHA256))
	return m.writer(t, name, append(change, func(c *autosave.Config) { c.Channel = remote.NewChannel(m.document, h.network.Join()) })...)
}

// machine is what a page uses, with a local history or none.
func (h *home) machine(name string, history autosave.Store) machine {
	d := remote.NewDocument(remote.Config{Server: &browser{net: h.n, session: h.session}, URL: "https://locks.example", Document: "project", Name: name, Token: h.token,
		Local: lock.Backend{Strategy: lock.WebLock, Resource: "holdfast:project", Locker: h.space.Client(name)}})
	return machine{document: d, store: remote.NewContents(d, history, autosavetest.SHA256), disk: h.disk}
}

func vetoing(err error) func(*autosave.Config) {
	return func(c *autosave.Config) {
		c.OnHandover = func(context.Context, string) error { return err }
	}
}

// savingOnce changes a page so that it gives its text to one save, and to no later one.
func savingOnce(c *autosave.Config) {
	text := c.Snapshot
	broken := false
	c.Snapshot = func(ctx context.Context) (autosave.Content, error) {
		if broken {
			return nil, errors.New("no text")
		}
		broken = true
		return text(ctx)
	}
}

func TestRequestReachesAnotherMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		var from string
		a := n.home("A").tab(t, "a", func(c *autosave.Config) {
			c.OnHandover = func(_ context.Context, who string) error { from = who; return nil }
		})
		b := n.home("B").tab(t, "b")
		c := n.home("C").tab(t, "c") // waits longer than the page that asks
		d := n.home("D").tab(t, "d")
		sleep(time.Second)
		a.type_("typed just now")
		began := time.Now()
		require.NoError(t, d.RequestEdit(context.Background(), autosave.EditOptions{}))
		assert.Less(t, time.Since(began), time.Second)
		assert.Equal(t, "tab D", from)
		assert.False(t, d.State().ReadOnly)
		assert.Equal(t, "typed just now", d.now(), "the holder has saved before")
		for _, w := range []*writer{a, b, c} {
			assert.True(t, w.State().ReadOnly)
		}
		assert.Equal(t, []lock.ReadonlyReason{lock.ReasonLeaseLost}, a.readonly)

		// And in the opposite direction.
		d.type_(", and by D")
		require.NoError(t, a.RequestEdit(context.Background(), autosave.EditOptions{}))
		assert.Equal(t, "typed just now, and by D", a.now())
		sleep(time.Minute)
		assert.False(t, a.State().ReadOnly)
		n.mu.Lock()
		assert.Equal(t, 1, n.listening, "the page that edits")
		n.mu.Unlock()
	})
}

// Neither force nor silence takes the lock from a holder on another machine.
func TestHolderOnAnotherMachineKeepsTheLock(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*autosave.Config)
		want   error
	}{
		"refuses":        {vetoing(errors.New("in a call")), autosave.ErrHandoverRefused},
		"does not hear":  {func(c *autosave.Config) { c.Channel = nil }, autosave.ErrHandoverNoAnswer},
		"cannot save it": {savingOnce, autosave.ErrHandoverRefused},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newInternet()
				h := n.home("A")
				m := h.machine("a", nil)
				join := func(c *autosave.Config) { c.Channel = remote.NewChannel(m.document, h.network.Join()) }
				a := m.writer(t, "a", join, c.change)
				a.type_("x")
				sleep(time.Second)
				a.type_("y")
				b := n.home("B").tab(t, "b")
				for _, force := range []bool{false, true} {
					began := time.Now()
					err := b.RequestEdit(context.Background(), autosave.EditOptions{Force: force, Grace: 2 * time.Second})
					require.ErrorIs(t, err, c.want)
					assert.LessOrEqual(t, time.Since(began), 2*time.Second)
					assert.False(t, a.State().ReadOnly)
					assert.True(t, b.State().ReadOnly)
				}
				if name == "refuses" {
					err := b.RequestEdit(context.Background(), autosave.EditOptions{})
					assert.ErrorContains(t, err, "in a call")
				}
				_ = a.Dispose(context.Background())
				sleep(time.Second)
				assert.False(t, b.State().ReadOnly, "it still waits in line")
			})
		})
	}
}

func TestTwoMachinesAskAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := n.home("A").tab(t, "a", func(c *autosave.Config) {
			c.OnHandover = func(context.Context, string) error { time.Sleep(time.Second); return nil }
		})
		b, c := n.home("B").tab(t, "b"), n.home("C").tab(t, "c")
		done := make(chan error, 1)
		go func() { done <- b.RequestEdit(context.Background(), autosave.EditOptions{}) }()
		sleep(500 * time.Millisecond)
		require.ErrorIs(t, c.RequestEdit(context.Background(), autosave.EditOptions{Force: true}), autosave.ErrHandoverBusy)
		require.NoError(t, <-done)
		assert.True(t, a.State().ReadOnly)
		assert.False(t, b.State().ReadOnly)
	})
}

// A page that gives up its request, or whose connection breaks, leaves the holder unchanged.
func TestRequestToAnotherMachineIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := n.home("A").tab(t, "a", func(c *autosave.Config) {
			c.OnHandover = func(ctx context.Context, _ string) error { <-ctx.Done(); time.Sleep(10 * time.Millisecond); return nil }
		})
		b := n.home("B").tab(t, "b")
		ctx, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		require.ErrorIs(t, b.RequestEdit(ctx, autosave.EditOptions{}), lock.ErrAborted)
		sleep(30 * time.Second)
		assert.False(t, a.State().ReadOnly)
		n.mu.Lock()
		assert.Empty(t, n.questions)
		n.mu.Unlock()

		done := make(chan error, 1)
		go func() { done <- b.RequestEdit(context.Background(), autosave.EditOptions{}) }()
		sleep(time.Second)
		n.cut()
		require.ErrorIs(t, <-done, autosave.ErrHandoverNoAnswer)
		sleep(30 * time.Second)
		assert.False(t, a.State().ReadOnly)
		assert.True(t, b.State().ReadOnly)
	})
}

// A page whose connection for questions breaks at once each time waits longer and longer. One that was connected for long connects again soon.
func TestPausesBetweenConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		n.home("A").tab(t, "a")
		sleep(time.Second)
		listened := func() (count int) {
			n.mu.Lock()
			defer n.mu.Unlock()
			for _, line := range n.log {
				if strings.HasPrefix(line, "LISTEN") {
					count++
				}
			}
			return count
		}
		before := listened()
		for range 1200 { // a minute
			n.cut()
			sleep(50 * time.Millisecond)
		}
		assert.Less(t, listened()-before, 30)
		sleep(2 * time.Minute)
		require.Equal(t, 1, n.connections())
		n.cut()
		sleep(1500 * time.Millisecond)
		assert.Equal(t, 1, n.connections())
	})
}

// recorder records the messages that a page receives.
type recorder struct {
	autosave.Channel
	heard func(autosave.Message)
}

func (c recorder) Listen(handle func(autosave.Message)) (func(), error) {
	return c.Channel.Listen(func(m autosave.Message) { c.heard(m); handle(m) })
}

// A machine gives its question up. The page that edits learns that once, and answers that come later end nothing.
func TestEndOfAQuestionIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		var heard []autosave.MessageKind
		var mu sync.Mutex
		h := n.home("A")
		m := h.machine("a", nil)
		m.writer(t, "a", func(c *autosave.Config) {
			c.OnHandover = func(context.Context, string) error { time.Sleep(3 * time.Second); return errors.New("in a call") }
			c.Channel = recorder{remote.NewChannel(m.document, h.network.Join()), func(m autosave.Message) {
				mu.Lock()
				defer mu.Unlock()
				heard = append(heard, m.Kind)
			}}
		})
		b := n.home("B").tab(t, "b")
		ctx, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		require.ErrorIs(t, b.RequestEdit(ctx, autosave.EditOptions{}), lock.ErrAborted)
		sleep(30 * time.Second)
		mu.Lock()
		assert.Equal(t, []autosave.MessageKind{autosave.EditRequest, autosave.EditCancelled}, heard)
		mu.Unlock()
	})
}

// A question arrives although its connection must be made again.
func TestQuestionComesWhileTheConnectionIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := n.home("A").tab(t, "a")
		b := n.home("B").tab(t, "b")
		sleep(time.Second)
		for range 20 {
			n.cut()
			sleep(100 * time.Millisecond)
		}
		a.type_("x")
		require.NoError(t, b.RequestEdit(context.Background(), autosave.EditOptions{Grace: 20 * time.Second}))
		assert.Equal(t, "x", b.now())
	})
}

// The first tab of a browser waits at the server. Another tab that asks gets the lock itself.
func TestSecondTabAsksAnotherMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := n.home("A").tab(t, "a")
		h := n.home("B")
		tabs := []*writer{h.tab(t, "b1"), h.tab(t, "b2"), h.tab(t, "b3")}
		sleep(time.Second)
		a.type_("x")
		require.NoError(t, tabs[2].RequestEdit(context.Background(), autosave.EditOptions{}))
		assert.Equal(t, "x", tabs[2].now())
		require.NoError(t, tabs[0].RequestEdit(context.Background(), autosave.EditOptions{}), "of a tab of this browser")
		assert.True(t, tabs[2].State().ReadOnly)
		require.NoError(t, a.RequestEdit(context.Background(), autosave.EditOptions{}))
		assert.False(t, a.State().ReadOnly)
	})
}

// A page without standby waits at the server only while it asks.
func TestPageWithoutStandbyAsksAnotherMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		var refuse atomic.Bool
		refuse.Store(true)
		a := n.home("A").tab(t, "a", func(c *autosave.Config) {
			c.OnHandover = func(context.Context, string) error {
				if refuse.Load() {
					return errors.New("no")
				}
				return nil
			}
		})
		b := n.home("B").tab(t, "b", func(c *autosave.Config) { c.NoStandby = true })
		require.ErrorIs(t, b.RequestEdit(context.Background(), autosave.EditOptions{}), autosave.ErrHandoverRefused)
		refuse.Store(false)
		require.NoError(t, b.RequestEdit(context.Background(), autosave.EditOptions{}))
		assert.False(t, b.State().ReadOnly)
		require.NoError(t, a.RequestEdit(context.Background(), autosave.EditOptions{}))
		require.NoError(t, a.Dispose(context.Background()))
		sleep(time.Minute)
		assert.True(t, b.State().ReadOnly, "it has not asked again")
	})
}

// A page that asks while the server is unreachable gets its answer in time.
func TestAskingWhileServerIsUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		n.home("A").tab(t, "a")
		b := n.home("B").tab(t, "b")
		sleep(time.Second)
		n.set(true)
		n.cut()
		for _, force := range []bool{false, true} {
			began := time.Now()
			err := b.RequestEdit(context.Background(), autosave.EditOptions{Force: force, Grace: 2 * time.Second})
			require.ErrorIs(t, err, autosave.ErrHandoverNoAnswer)
			assert.LessOrEqual(t, time.Since(began), 2*time.Second)
		}
	})
}

// A page gets the lock before its question is on its way. The question does not go to a page that gets the lock from it afterwards.
func TestQuestionOfAPageThatEditsIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		n.delay = func(remote.Request) bool { time.Sleep(100 * time.Millisecond); return false }
		b := n.home("B").tab(t, "b")
		require.NoError(t, b.Suspend(context.Background()))
		go func() { _ = b.Resume(context.Background()) }()
		sleep(50 * time.Millisecond)
		require.True(t, b.State().ReadOnly)
		require.NoError(t, b.RequestEdit(context.Background(), autosave.EditOptions{Grace: time.Minute}))
		a := n.home("A").tab(t, "a")
		require.NoError(t, a.RequestEdit(context.Background(), autosave.EditOptions{}))
		sleep(time.Minute)
		assert.False(t, a.State().ReadOnly)
		assert.True(t, b.State().ReadOnly)
	})
}
