package autosave_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
)

// document prepares a page that shows the document at a path.
func (w *world) document(name, path string) *page {
	p := w.prepare(name)
	p.files = autosavetest.NewDisk().Client()
	p.store = autosave.NewLayout(p.files, autosavetest.SHA256)
	p.config.Lock.Path = strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	return p
}

// beside makes the prepared page a second document of the other page.
func (p *page) beside(other *page) *page {
	p.locks = func(autosave.Locks) autosave.Locks { return other.manager }
	return p
}

// vetoes makes the page answer a request after a pause.
func (p *page) vetoes(after time.Duration, answer error) (asked *[]time.Duration) {
	asked = new([]time.Duration)
	p.config.OnHandover = func(context.Context, string) error {
		*asked = append(*asked, time.Since(p.w.start))
		time.Sleep(after)
		return answer
	}
	return asked
}

// offersOnce makes the page offer the lock at the first request, and refuse later ones after a pause. It returns the number of requests.
func (p *page) offersOnce(after time.Duration) (times *int) {
	times = new(int)
	p.config.OnHandover = func(ctx context.Context, _ string) error {
		if *times++; *times == 1 {
			return nil
		}
		_ = wait.For(ctx, after)
		return errNotNow
	}
	return times
}

// savesSlowly makes each save of the page take nine seconds.
func (p *page) savesSlowly() {
	p.files.Before = func(operation string) {
		if strings.HasPrefix(operation, "write history") {
			time.Sleep(9 * time.Second)
		}
	}
}

// A page that edits a document around or below the wanted one is asked as one that edits the wanted one is.
func TestEditorAroundOrBelowIsAsked(t *testing.T) {
	for _, paths := range [][2]string{{"book", "book"}, {"book", "book/chapter"}, {"book/chapter", "book"}, {"", "book"}, {"book", ""}} {
		for name, c := range map[string]struct {
			options autosave.EditOptions
			veto    error
			after   time.Duration // until the page that edits answers
			deaf    bool
			fails   error
			takes   time.Duration
		}{
			"hands over":                   {after: 2 * time.Second, takes: 2 * time.Second},
			"refuses":                      {veto: errNotNow, fails: autosave.ErrHandoverRefused},
			"refuses late":                 {options: force, veto: errNotNow, after: 2 * time.Second, fails: autosave.ErrHandoverRefused, takes: 2 * time.Second},
			"is silent":                    {deaf: true, fails: autosave.ErrHandoverNoAnswer, takes: autosave.DefaultGrace},
			"is silent and loses the lock": {options: autosave.EditOptions{Force: true}, deaf: true, takes: autosave.DefaultGrace},
		} {
			t.Run("edits "+paths[0]+", wanted "+paths[1]+", "+name, func(t *testing.T) {
				virtual(t, func(t *testing.T, w *world) {
					a := w.document("a", paths[0])
					a.vetoes(c.after, c.veto)
					a.open()
					b := w.document("b", paths[1]).open()
					require.False(t, a.ReadOnly())
					require.True(t, b.ReadOnly())
					a.typed("typed a moment ago")
					a.channel.Deafen(c.deaf)
					err := b.RequestEdit(t.Context(), c.options)
					assert.Equal(t, c.takes, time.Since(w.start).Truncate(10*time.Millisecond))
					require.ErrorIs(t, err, c.fails)
					w.sleep(time.Second)
					assert.Equal(t, c.fails == nil, a.ReadOnly())
					assert.Equal(t, c.fails != nil, b.ReadOnly())
					if c.fails != nil {
						require.NoError(t, a.Dispose(t.Context()))
						w.sleep(time.Second)
						assert.False(t, b.ReadOnly(), "its turn comes when the other one ends")
					}
					if !c.deaf {
						saved, err := a.store.Read(t.Context(), autosave.Current)
						require.NoError(t, err)
						assert.Equal(t, "typed a moment ago", string(saved))
					}
				})
			})
		}
	}
}

// busyChannel delivers the messages for a page late, as a page does that is busy.
type busyChannel struct {
	autosave.Channel
	by time.Duration
}

func (l busyChannel) Listen(handle func(autosave.Message)) (func(), error) {
	return l.Channel.Listen(func(m autosave.Message) { time.AfterFunc(l.by, func() { handle(m) }) })
}

// silentChannel says nothing of the page's leases, as a page that is busy for longer than a roll call.
type silentChannel struct{ lock.Channel }

func (silentChannel) Post(lock.Message) error { return nil }

// A page that is too busy to say that it edits a document around another one keeps its lock until it was asked and its time is over.
func TestBusyEditorAroundKeepsLockUntilItsTimeIsOver(t *testing.T) {
	for name, veto := range map[string]error{"it refuses": errNotNow, "it hands over": nil} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a, b := w.document("a", ""), w.document("b", "chapter")
				a.options.Channel = silentChannel{a.options.Channel}
				a.config.Channel = busyChannel{a.channel, autosave.DefaultGrace - time.Second}
				asked := a.vetoes(0, veto)
				a.open()
				b.open()
				require.False(t, a.ReadOnly())
				require.True(t, b.ReadOnly())
				a.typed("text")
				err := b.RequestEdit(t.Context(), autosave.EditOptions{Force: true})
				assert.Len(t, *asked, 1)
				require.Equal(t, veto != nil, errors.Is(err, autosave.ErrHandoverRefused), err)
				assert.Equal(t, veto != nil, b.ReadOnly())
				assert.Empty(t, a.offered(), "everything was saved")
			})
		})
	}
}

// The pages that edit documents below the wanted one are asked at once. The lock is taken when all of them have offered it.
func TestAllEditorsBelowAreAsked(t *testing.T) {
	type editor struct {
		veto  error
		after time.Duration
		deaf  bool
	}
	for name, c := range map[string]struct {
		options autosave.EditOptions
		second  editor
		fails   error
		takes   time.Duration
		asked   int // how often the first editor was
	}{
		"both hand over":                        {takes: 0, asked: 1},
		"one needs time":                        {second: editor{after: 2 * time.Second}, takes: 2 * time.Second, asked: 1},
		"one refuses late":                      {options: force, second: editor{veto: errNotNow, after: 2 * time.Second}, fails: autosave.ErrHandoverRefused, takes: 2 * time.Second, asked: 1},
		"one is silent":                         {second: editor{deaf: true}, fails: autosave.ErrHandoverNoAnswer, takes: autosave.DefaultGrace, asked: 1},
		"one is silent and loses the lock":      {options: autosave.EditOptions{Force: true}, second: editor{deaf: true}, takes: autosave.DefaultGrace, asked: 1},
		"one is silent and loses the lock late": {options: autosave.EditOptions{Force: true, Grace: 8 * time.Second}, second: editor{deaf: true}, takes: 8 * time.Second, asked: 1},
		"one is silent beyond the offer":        {options: autosave.EditOptions{Force: true, Grace: 12 * time.Second}, second: editor{deaf: true}, takes: 12 * time.Second, asked: 2},
	} {
		for _, first := range []string{"first", "last"} { // the page that needs time, in the order of the editors
			t.Run(name+", "+first, func(t *testing.T) {
				virtual(t, func(t *testing.T, w *world) {
					a, s := w.document("a", "book/1"), w.document("s", "book/2")
					asked := a.vetoes(0, nil)
					s.vetoes(c.second.after, c.second.veto)
					for _, p := range map[string][]*page{"first": {s, a}, "last": {a, s}}[first] {
						p.open()
						w.sleep(time.Millisecond)
					}
					other := w.document("other", "books").open()
					b := w.document("b", "book").open()
					require.True(t, b.ReadOnly())
					s.channel.Deafen(c.second.deaf)
					w.start = time.Now()
					err := b.RequestEdit(t.Context(), c.options)
					assert.Equal(t, c.takes, time.Since(w.start).Truncate(10*time.Millisecond))
					require.ErrorIs(t, err, c.fails)
					assert.Len(t, *asked, c.asked)
					w.sleep(time.Minute)
					assert.Equal(t, c.fails != nil, b.ReadOnly())
					assert.Equal(t, c.fails == nil, a.ReadOnly())
					assert.Equal(t, c.fails == nil, s.ReadOnly())
					assert.False(t, other.ReadOnly(), "its document is neither around nor below")
				})
			})
		}
	}
}

// The offer of one editor is over when the other one offers the lock: it edits again, and is asked once more.
func TestExpiredOfferIsRequestedAgain(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, s := w.document("a", "book/1"), w.document("s", "book/2")
		asked := a.vetoes(0, nil)
		s.vetoes(2500*time.Millisecond, nil)
		s.savesSlowly()
		a.open()
		s.open()
		b := w.document("b", "book").open()
		result := b.asks(t.Context(), force)
		w.sleep(2400 * time.Millisecond)
		s.typed("saving this takes long")
		w.sleep(8 * time.Second)
		require.False(t, a.ReadOnly(), "its offer is over")
		a.typed("typed since")
		require.NoError(t, <-result)
		assert.Len(t, *asked, 2)
		assert.Empty(t, a.offered(), "everything was saved")
	})
}

// Another page becomes the editor below while this one asks. It is asked as well.
func TestNextEditorBelowIsAsked(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.document("a", "book/1").open()
		c := w.document("c", "book/1")
		asked := c.vetoes(0, errNotNow)
		c.open()
		b := w.document("b", "book").open()
		a.channel.Deafen(true)
		result := b.asks(t.Context(), autosave.EditOptions{Force: true})
		w.sleep(4 * time.Second)
		require.NoError(t, a.Dispose(t.Context()))
		synctest.Wait()
		require.ErrorIs(t, <-result, autosave.ErrHandoverRefused)
		assert.Len(t, *asked, 1)
		assert.False(t, c.ReadOnly())
	})
}

// A page that took the lock from an editor around its document keeps others out of all of that. A page that wants another document
// there asks it.
func TestEditorThatKeepsMoreIsAsked(t *testing.T) {
	for name, veto := range map[string]error{"it refuses": errNotNow, "it hands over": nil} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				w.document("a", "book").open()
				b, c := w.document("b", "book/1"), w.document("c", "book/2")
				asked := b.vetoes(time.Second, veto)
				b.open()
				c.open()
				require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{}))
				w.sleep(time.Second)
				require.True(t, c.ReadOnly())
				assert.Equal(t, "b", c.State().Holder.OwnerID)
				b.typed("typed a moment ago")
				err := c.RequestEdit(t.Context(), force)
				require.Equal(t, veto != nil, errors.Is(err, autosave.ErrHandoverRefused), err)
				assert.Equal(t, veto != nil, c.ReadOnly())
				assert.Len(t, *asked, 1)
				w.sleep(time.Second)
				assert.Empty(t, b.offered(), "everything was saved")
			})
		})
	}
}

// A page waits for a document around the one that changes hands. It lets the handover pass, and has its turn later.
func TestHandoverPassesWaitersAround(t *testing.T) {
	for _, around := range []string{"book", ""} {
		for name, forced := range map[string]bool{"handed over": false, "by force": true} {
			t.Run(around+", "+name, func(t *testing.T) {
				virtual(t, func(t *testing.T, w *world) {
					a := w.document("a", "book/1").open()
					x := w.document("x", around).open()
					b := w.document("b", "book/1").open()
					other := w.document("other", "books").open()
					require.True(t, x.ReadOnly())
					a.typed("typed a moment ago")
					a.channel.Deafen(forced)
					require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{Force: forced}))
					assert.False(t, b.ReadOnly())
					w.sleep(time.Minute)
					assert.True(t, a.ReadOnly())
					assert.True(t, x.ReadOnly())
					require.NoError(t, a.Dispose(t.Context()))
					require.NoError(t, b.Dispose(t.Context()))
					require.NoError(t, other.Dispose(t.Context()))
					w.sleep(time.Second)
					assert.False(t, x.ReadOnly())
				})
			})
		}
	}
}

// A lease around a document is awaited, and no page lets the handover pass. The page that asks learns the reason. It takes nothing later: the
// other page edits again.
func TestHandoverThatWaitsTellsWhy(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.document("a", "book/1").open()
		m := w.manager("waits")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() {
			_, _ = m.Acquire(ctx, lock.AcquireOptions{Path: []string{"book"}, Timeout: time.Hour, Backoff: lock.Backoff{MaxRetries: lock.Unlimited}})
		}()
		synctest.Wait()
		b := w.document("b", "book/1").open()
		err := b.RequestEdit(t.Context(), autosave.EditOptions{})
		require.ErrorIs(t, err, autosave.ErrReadOnly)
		require.ErrorContains(t, err, "another page holds or awaits a part of it")
		a.typed("typed again")
		stop()
		w.sleep(time.Minute)
		assert.False(t, a.ReadOnly())
		assert.Empty(t, a.offered())
	})
}
