package autosave_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/internal/wait"
)

var force = autosave.EditOptions{Force: true, Grace: time.Second}

func TestHandover(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b := w.tab("a"), w.tab("b")
		w.tab("c") // has waited longer than b will
		a.typed("typed a moment ago")
		a.forget()
		b.forget()
		require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{}))
		w.sleep(100 * time.Millisecond)
		assert.True(t, a.ReadOnly())
		assert.False(t, b.ReadOnly())
		a.told(`
			0s phase readonly pending=1
			0s phase writing-current pending=1
			0s phase updating-index pending=18
			0s phase gc pending=18
			0s phase readonly
			0s saved #1 18B
			0s readonly lease-lost lease-lost holder=b
		`)
		b.told(`
			0s phase awaiting-lock acquire-denied
			0s editable content="typed a moment ago"
			0s phase idle
		`)
		assert.Equal(t, "b", a.State().Holder.OwnerID)
		assert.Empty(t, a.offered(), "everything was saved")
		require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{}), "it edits already")
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}), "and back")
		require.NoError(t, a.FlushEvents(t.Context()))
		assert.Equal(t, "typed a moment ago", a.shows())
	})
}

func TestHolderMayRefuse(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.config.OnHandover = func(_ context.Context, from string) error { return errors.New("not now, " + from) }
		a.open()
		b := w.tab("b")
		err := b.RequestEdit(t.Context(), force)
		require.ErrorIs(t, err, autosave.ErrHandoverRefused)
		assert.ErrorContains(t, err, "not now, b")
		assert.False(t, a.ReadOnly(), "force takes nothing from an editor that answers")
		a.typed("x")
		w.sleep(time.Second)
		assert.Equal(t, "x", w.saved())
	})
}

func TestVetoIsBounded(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		hung := make(chan struct{})
		defer close(hung)
		a.config.OnHandover = func(context.Context, string) error { <-hung; return errors.New("too late") }
		a.open()
		b := w.tab("b")
		require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{Grace: time.Second}))
		assert.Equal(t, 3*time.Second, time.Since(w.start))
	})
}

// A page has returned its text for the last save before the handover as the text of a later key arrives. The next editor begins with that
// key too.
func TestHandoverSavesWhatWasTypedAfterTheSnapshot(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		take, late := a.config.Snapshot, make(chan string, 1)
		a.config.Snapshot = func(ctx context.Context) (autosave.Content, error) {
			content, err := take(ctx)
			select {
			case text := <-late:
				a.typed(text)
			default:
			}
			return content, err
		}
		a.open()
		b := w.tab("b")
		a.typed("older")
		late <- ", newer"
		require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{}))
		assert.Equal(t, "older, newer", b.shows())
		w.sleep(time.Second)
		assert.Empty(t, a.offered())
		assert.Zero(t, a.State().PendingBytes)
	})
}

// A page is asked for the lock before it has reported the last key. The next editor begins with that key too.
func TestHandoverSavesTextThatIsNotReportedYet(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.savedOne(storage)
		b := w.author("b", storage).start()
		a.mu.Lock()
		a.text += ", newer"
		a.number++
		a.mu.Unlock()
		require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{}))
		assert.Equal(t, "one, newer", b.shows())
		a.MarkDirty()
		w.sleep(time.Second)
		assert.Empty(t, b.waits)
		assert.Equal(t, []string{"one, newer", "one"}, w.generations())
	})
}

// A page takes four seconds for each snapshot, and gets another key meanwhile that it does not report. It answers in the time that the page
// that asks gives it, so that force does not take the lock from it.
func TestSlowPageAnswersForceInTime(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.author("a", storage)
		a.config.Snapshot = func(ctx context.Context) (autosave.Content, error) {
			content, err := a.take(ctx)
			a.mu.Lock()
			a.text += "+"
			a.number++
			a.mu.Unlock()
			return content, errors.Join(err, wait.For(ctx, 4*time.Second))
		}
		a.start()
		b := w.author("b", storage).start()
		a.types("one")
		require.ErrorIs(t, b.RequestEdit(t.Context(), force), autosave.ErrHandoverRefused)
		assert.Equal(t, 10*time.Second, time.Since(w.start))
		assert.False(t, a.ReadOnly())
	})
}

// A page that cannot save does not hand over, because its text would be lost.
func TestHolderThatCannotSaveRefuses(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b := w.tab("a"), w.tab("b")
		a.typed("precious")
		a.files.Fail()
		require.ErrorIs(t, b.RequestEdit(t.Context(), force), autosave.ErrHandoverRefused)
		assert.False(t, a.ReadOnly())
		a.files.Mend()
		w.sleep(time.Minute)
		assert.Equal(t, "precious", w.saved())
	})
}

func TestHolderThatDoesNotAnswer(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b := w.tab("a"), w.tab("b")
		a.channel.Deafen(true)
		require.ErrorIs(t, b.RequestEdit(t.Context(), autosave.EditOptions{}), autosave.ErrHandoverNoAnswer)
		assert.Equal(t, autosave.DefaultGrace, time.Since(w.start))
		assert.True(t, b.ReadOnly())
		a.typed("unsaved")
		w.sleep(100 * time.Millisecond)
		require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{Force: true, Grace: 100 * time.Millisecond}))
		assert.False(t, b.ReadOnly())
		w.sleep(100 * time.Millisecond)
		assert.True(t, a.ReadOnly())
		assert.Equal(t, []string{"unsaved"}, a.offered())
	})
}

func TestTwoConcurrentRequests(t *testing.T) {
	for name, deaf := range map[string]bool{"answered": false, "forced": true} {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				virtual(t, func(t *testing.T, w *world) {
					a := w.prepare("a")
					if !deaf {
						a.slow()
					}
					a.open()
					b, c := w.tab("b"), w.tab("c")
					a.typed("saving this takes a second")
					a.channel.Deafen(deaf)
					errs := make([]error, 2)
					var both sync.WaitGroup
					for i, p := range []*page{b, c} {
						both.Go(func() { errs[i] = p.RequestEdit(t.Context(), force) })
					}
					both.Wait()
					w.sleep(2 * time.Second)
					editors := 0
					for i, p := range []*page{b, c} {
						if errs[i] == nil {
							editors++
							assert.False(t, p.ReadOnly())
						} else {
							require.ErrorIs(t, errs[i], autosave.ErrHandoverBusy)
							assert.True(t, p.ReadOnly())
						}
					}
					require.Equal(t, 1, editors)
				})
			}
		})
	}
}

func TestOnePageAsksOnce(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b := w.tab("a"), w.tab("b")
		a.channel.Deafen(true)
		go func() { _ = b.RequestEdit(context.Background(), autosave.EditOptions{}) }()
		synctest.Wait()
		require.ErrorIs(t, b.RequestEdit(t.Context(), force), autosave.ErrHandoverBusy)
		w.sleep(time.Minute)
	})
}

// undecided is an OnHandover that never decides.
func undecided(ctx context.Context, _ string) error {
	<-ctx.Done()
	return nil
}

func TestRequesterThatGivesUp(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.config.OnHandover = undecided
		a.open()
		b := w.tab("b")
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		err := b.RequestEdit(ctx, force)
		require.ErrorIs(t, err, autosave.ErrAborted)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		w.sleep(time.Minute)
		assert.False(t, a.ReadOnly())
		assert.True(t, b.ReadOnly())
	})
}

// ghostAsks asks for the lock as a page does that is gone at once.
func (w *world) ghostAsks() {
	w.Helper()
	require.NoError(w, w.network.Join().Post(autosave.Message{Kind: autosave.EditRequest, Round: "1", From: "ghost"}))
	synctest.Wait()
}

// An asker that was granted the lock and is gone before it takes it: the holder goes on.
func TestRequesterThatDies(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		w.ghostAsks()
		assert.True(t, a.ReadOnly())
		a.typed("meanwhile")
		w.sleep(11 * time.Second)
		assert.False(t, a.ReadOnly())
		w.sleep(time.Second)
		assert.Equal(t, "meanwhile", w.saved())
	})
}

// A page that gives the lock away asks nobody for it before it is known which page holds it. Otherwise the event that
// the lease has ended would reach it while it takes the lock back.
func TestFormerEditorAsksForTheLockBack(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.slowTab("a")
		b := w.tab("b")
		var asked []string
		stop, err := w.network.Join().Listen(func(m autosave.Message) {
			if m.Kind == autosave.EditRequest {
				asked = append(asked, m.From)
			}
		})
		require.NoError(t, err)
		defer stop()
		a.typed("saving this takes a second")
		given := make(chan error, 1)
		go func() { given <- b.RequestEdit(context.Background(), autosave.EditOptions{}) }()
		w.sleep(500 * time.Millisecond)
		require.True(t, a.ReadOnly())
		_, ok := a.Lease()
		require.False(t, ok)
		ctx, giveUp := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer giveUp()
		require.ErrorIs(t, a.RequestEdit(ctx, autosave.EditOptions{}), autosave.ErrAborted)
		assert.Equal(t, []string{"b"}, asked)
		require.NoError(t, <-given)
		for range 2 {
			require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
			require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{}))
		}
	})
}

func TestLockThatIsWantedBackIsNotTaken(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		w.ghostAsks()
		require.True(t, a.ReadOnly())
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		assert.False(t, a.ReadOnly())
	})
}

func TestHolderLeavesWhileItIsAsked(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b := w.tab("a"), w.tab("b")
		a.channel.Deafen(true)
		go func() { time.Sleep(time.Second); _ = a.Dispose(context.Background()) }()
		require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{}))
		assert.Equal(t, time.Second, time.Since(w.start))
	})
}

// A page that no longer asks frees the page that edits at once: the question to its user ends, and another page may ask.
func TestWithdrawnRequestFreesTheEditor(t *testing.T) {
	for name, withdraw := range map[string]func(b *page, stop func()){
		"suspended": func(b *page, _ func()) { _ = b.Suspend(context.Background()) },
		"disposed":  func(b *page, _ func()) { _ = b.Dispose(context.Background()) },
		"aborted":   func(_ *page, stop func()) { stop() },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a := w.prepare("a")
				a.config.OnHandover = func(ctx context.Context, from string) error {
					if from == "b" {
						<-ctx.Done()
					}
					return nil
				}
				a.open()
				b, c := w.tab("b"), w.tab("c")
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				asked := b.asks(ctx, autosave.EditOptions{})
				w.sleep(time.Second)
				withdraw(b, stop)
				require.Error(t, <-asked)
				require.NoError(t, c.RequestEdit(t.Context(), autosave.EditOptions{}))
				assert.Equal(t, time.Second, time.Since(w.start))
			})
		})
	}
}

// The question to the user ends when the page that was asked leaves.
func TestVetoEndsWhenThePageLeaves(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		ended := make(chan time.Time, 1)
		a.config.OnHandover = func(ctx context.Context, _ string) error {
			<-ctx.Done()
			ended <- time.Now()
			return nil
		}
		a.open()
		w.ghostAsks()
		w.sleep(time.Second)
		require.NoError(t, a.Suspend(t.Context()))
		assert.Equal(t, time.Second, (<-ended).Sub(w.start))
	})
}
