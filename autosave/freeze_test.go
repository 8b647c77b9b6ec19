package autosave_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/lock"
)

// freezer freezes a page: its calls wait until it thaws.
type freezer struct {
	mu     sync.Mutex
	thawed chan struct{} // nil while the page runs
	at     int           // freezes at this operation of the disk
	ops    int
	done   bool
}

func (f *freezer) freeze() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.thawed == nil && !f.done {
		f.thawed = make(chan struct{})
	}
}

func (f *freezer) thaw() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = true
	if f.thawed != nil {
		close(f.thawed)
		f.thawed = nil
	}
}

func (f *freezer) wait() {
	f.mu.Lock()
	thawed := f.thawed
	f.mu.Unlock()
	if thawed != nil {
		<-thawed
	}
}

// operation is one operation of the disk.
func (f *freezer) operation() {
	f.mu.Lock()
	f.ops++
	now := f.ops == f.at
	f.mu.Unlock()
	if now {
		f.freeze()
	}
	f.wait()
}

// A page is frozen at any operation of a commit, or between two; another one takes the
// lock by force, edits and saves; the first one thaws. Nothing stale may be committed
// over what the successor has, and what the first one could not save it is offered.
func TestPageThatThawsCommitsNothingOverItsSuccessor(t *testing.T) {
	refused := 0
	for round := range 200 {
		virtual(t, func(t *testing.T, w *world) {
			random := rand.New(rand.NewPCG(1, uint64(round)))
			a := w.prepare("a")
			freezer := &freezer{at: 9 + random.IntN(14)} // after it was opened and has begun to save
			a.files.Before = func(string) { freezer.operation() }
			a.options.Backends[0].Locker = &frozenLocker{Locker: w.space.Client("a"), freezer: freezer}
			a.open()
			b := w.tab("b")

			all := ""
			for n := range 8 {
				s := fmt.Sprintf("a%d,", n)
				all += s
				a.typed(s)
				w.sleep(time.Duration(random.IntN(700)) * time.Millisecond)
			}
			freezer.freeze()
			a.channel.Deafen(true)
			loaded := takeOverAndSave(t, b)

			a.channel.Deafen(false)
			freezer.thaw()
			require.NoError(t, a.Resume(t.Context()))
			if random.IntN(2) == 0 {
				a.MarkDirty()
			}
			_, err := a.FlushNow(t.Context())
			require.ErrorIs(t, err, autosave.ErrReadOnly)
			b.typed("b2,")
			w.sleep(5 * time.Second)

			require.Equal(t, loaded+"b1,b2,", w.saved(), "the frozen page wrote over its successor")
			require.Equal(t, loaded+"b1,b2,", b.shows())
			require.True(t, a.ReadOnly())
			if loaded != all {
				refused++
				require.Contains(t, a.offered(), all, "a keystroke of the frozen page is lost")
			}
			for _, g := range w.generations() {
				require.True(t, strings.HasPrefix(all, g) || strings.HasPrefix(g, loaded), g)
			}
		})
	}
	assert.Greater(t, refused, 20, "too few writes were refused")
	t.Logf("in %d of 200 runs something was unsaved", refused)
}

// takeOverAndSave takes the lock by force, and saves an edit. It returns the text that the page loaded before the edit.
func takeOverAndSave(t *testing.T, b *page) (loaded string) {
	t.Helper()
	require.NoError(t, b.RequestEdit(t.Context(), force))
	require.NoError(t, b.FlushEvents(t.Context()))
	loaded = b.shows()
	b.typed("b1,")
	_, err := b.FlushNow(t.Context())
	require.NoError(t, err)
	return loaded
}

// A page is frozen while it loads, for less than the time between two heartbeats, and loses its lock. As it thaws, the content arrives
// before the message that the lock was stolen. The page does not edit, not even for a moment.
func TestFrozenWhileLoading(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.savedUnder(1, "saved")
		a, freezer := w.prepare("a"), &freezer{}
		a.files.Before = func(op string) {
			if strings.HasPrefix(op, "read history") {
				freezer.freeze()
			}
			freezer.wait()
		}
		a.options.Backends[0].Locker = &frozenLocker{Locker: w.space.Client("a"), freezer: freezer, late: 5 * time.Millisecond}
		a.open()
		w.stealer()
		w.sleep(900 * time.Millisecond)
		require.Zero(t, a.count(autosave.EventEditable))
		freezer.thaw()
		w.sleep(time.Second)
		assert.Zero(t, a.count(autosave.EventEditable))
		assert.Equal(t, 1, a.count(autosave.EventReadonly))
	})
}

// frozenLocker reports a steal after the thaw, or so much later.
type frozenLocker struct {
	lock.Locker
	freezer *freezer
	late    time.Duration
}

type frozenGrant struct {
	lock.Grant
	lost chan struct{}
	once sync.Once
	over chan struct{}
}

func (l *frozenLocker) Request(ctx context.Context, r lock.Request) (lock.Grant, error) {
	g, err := l.Locker.Request(ctx, r)
	if err != nil {
		return nil, err
	}
	f := &frozenGrant{Grant: g, lost: make(chan struct{}), over: make(chan struct{})}
	go func() {
		select {
		case <-g.Lost():
			l.freezer.wait()
			time.Sleep(l.late)
			close(f.lost)
		case <-f.over:
		}
	}()
	return f, nil
}

func (f *frozenGrant) Lost() <-chan struct{} { return f.lost }

func (f *frozenGrant) Release(ctx context.Context) error {
	f.once.Do(func() { close(f.over) })
	return f.Grant.Release(ctx)
}

// typeUntil types a number every three milliseconds in the first page that may be typed in. It returns how many it typed.
func typeUntil(stop <-chan struct{}, pages []*page) (typed int) {
	for {
		select {
		case <-stop:
			return typed
		case <-time.After(3 * time.Millisecond):
		}
		for _, p := range pages {
			p.mu.Lock()
			// A page lets nobody type once it knows that it is read-only, which it
			// may learn in the middle of a word.
			if !p.ReadOnly() {
				p.text += fmt.Sprintf("%d.", typed)
				typed++
				p.mu.Unlock()
				p.MarkDirty()
				break
			}
			p.mu.Unlock()
		}
	}
}

// Two pages hand the lock back and forth while a person types in whichever may be typed
// in. Every letter is in the end.
func TestHandoversWhileTyping(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		random := rand.New(rand.NewPCG(2, 2))
		pages := []*page{w.tab("a"), w.tab("b")}
		stop := make(chan struct{})
		typed := 0
		var typing sync.WaitGroup
		typing.Go(func() { typed = typeUntil(stop, pages) })
		for n := range 200 {
			asker := pages[(n+1)%2]
			require.NoError(t, asker.RequestEdit(t.Context(), autosave.EditOptions{}), "handover %d", n)
			require.NoError(t, asker.FlushEvents(t.Context()))
			time.Sleep(time.Duration(random.IntN(50)) * time.Millisecond)
		}
		close(stop)
		typing.Wait()
		w.sleep(time.Second)
		var want strings.Builder
		for n := range typed {
			fmt.Fprintf(&want, "%d.", n)
		}
		offered := slices.Concat(pages[0].offered(), pages[1].offered())
		if w.saved() != want.String() {
			missing := 0
			for n := range typed {
				letter := fmt.Sprintf("%d.", n)
				in := func(text string) bool { return strings.HasPrefix(text, letter) || strings.Contains(text, "."+letter) }
				if !in(w.saved()) && !slices.ContainsFunc(offered, in) {
					missing++
				}
			}
			require.Zero(t, missing, "of %d letters", typed)
		}
		assert.Greater(t, typed, 500)
	})
}
