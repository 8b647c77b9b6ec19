package autosave_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/lock"
)

// Another page is about to steal the lock of a silent editor. An asker without force learns that the editor does not answer.
func TestRequesterWithoutForceHasNoRival(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b := w.tab("a"), w.tab("b")
		a.channel.Deafen(true)
		asked := b.asks(t.Context(), autosave.EditOptions{})
		require.NoError(t, w.network.Join().Post(autosave.Message{Kind: autosave.EditRival, Round: "0", From: "ghost", Force: true}))
		require.ErrorIs(t, <-asked, autosave.ErrHandoverNoAnswer)
	})
}

// Two pages ask a silent editor. The page that takes the lock by force keeps it: the other one gives up.
func TestRivalOfATakeoverByForceGetsBusy(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b, c := w.tab("a"), w.tab("b"), w.tab("c")
		a.channel.Deafen(true)
		forced := b.asks(t.Context(), force)
		asked := c.asks(t.Context(), autosave.EditOptions{})
		require.NoError(t, <-forced)
		require.ErrorIs(t, <-asked, autosave.ErrHandoverBusy)
		w.sleep(time.Minute)
		assert.False(t, b.ReadOnly())
	})
}

// A page that takes the lock by force is waiting for it.
func TestTakeoverShowsThatThePageWaits(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		b := w.prepare("b")
		b.slowSteal(time.Second)
		b.open()
		a.channel.Deafen(true)
		asked := b.asks(t.Context(), force)
		w.sleep(1500 * time.Millisecond)
		assert.Equal(t, autosave.PhaseAwaitingLock, b.State().Phase)
		require.NoError(t, <-asked)
	})
}

// The options of the lock say nothing about how a page waits: it never steals the lock of an editor without a request.
func TestLockOptionsDoNotSteal(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		b := w.prepare("b")
		b.config.Lock.Steal = true
		b.open()
		w.sleep(time.Minute)
		assert.True(t, b.ReadOnly())
		assert.False(t, a.ReadOnly())
		require.NoError(t, a.Dispose(t.Context()))
		w.sleep(time.Second)
		assert.False(t, b.ReadOnly())
	})
}

// A page asks while it wakes, and wakes as a viewer: it goes on waiting for the answer.
func TestRequestWhileThePageWakes(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b := w.tab("a"), w.tab("b")
		require.NoError(t, b.Suspend(t.Context()))
		a.channel.Deafen(true)
		go func() { _ = b.Resume(context.Background()) }()
		synctest.Wait()
		require.ErrorIs(t, b.RequestEdit(t.Context(), autosave.EditOptions{}), autosave.ErrHandoverNoAnswer)
	})
}

// The editor is put to sleep or closed while it saves for a handover. The asker gets the lock.
func TestEditorLeavesWhileItSavesForAHandover(t *testing.T) {
	for name, leave := range map[string]func(*page, context.Context) error{
		"suspend": func(p *page, ctx context.Context) error { return p.Suspend(ctx) },
		"dispose": func(p *page, ctx context.Context) error { return p.Dispose(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a := w.slowTab("a")
				b := w.tab("b")
				a.typed("text")
				asked := b.asks(t.Context(), autosave.EditOptions{})
				w.sleep(500 * time.Millisecond)
				require.NoError(t, leave(a, t.Context()))
				require.NoError(t, <-asked)
				assert.Equal(t, "text", b.shows())
			})
		})
	}
}

// A page that took the lock from an editor around its document kept others out of all of that. After it has lost the
// lock, it speaks for its own document alone.
func TestFormerEditorSpeaksForItsDocument(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.document("a", "book").open()
		b := w.document("b", "book/1").open()
		require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{}))
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		require.True(t, b.ReadOnly())
		var documents []string
		stop, err := w.network.Join().Listen(func(m autosave.Message) {
			if m.From == "b" && m.Kind == autosave.EditRequest {
				documents = append(documents, m.Document)
			}
		})
		require.NoError(t, err)
		defer stop()
		require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{}))
		w.sleep(time.Second)
		assert.Equal(t, []string{lock.Name("", []string{"book", "1"})}, slices.Compact(documents))
	})
}

// An editor on another machine accepts, and is silent then. Force does not reach it.
func TestForceDoesNotReachAnotherMachine(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b := w.tab("a"), w.tab("b")
		a.channel.Deafen(true)
		remote := w.network.Join()
		stop, err := remote.Listen(func(m autosave.Message) {
			if m.Kind == autosave.EditRequest {
				_ = remote.Post(autosave.Message{Kind: autosave.EditAccepted, Round: m.Round, From: "remote", Remote: true})
			}
		})
		require.NoError(t, err)
		defer stop()
		require.ErrorIs(t, b.RequestEdit(t.Context(), force), autosave.ErrHandoverNoAnswer)
		assert.False(t, a.ReadOnly())
	})
}

// An editor that hands over answers the asker each time it asks, and any other page that it is busy.
func TestEditorAnswersEachRequest(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.config.OnHandover = undecided
		a.open()
		ghost := w.network.Join()
		var answers []string
		stop, err := ghost.Listen(func(m autosave.Message) { answers = append(answers, string(m.Kind)+" "+m.Round) })
		require.NoError(t, err)
		defer stop()
		for _, round := range []string{"1", "1", "2"} {
			require.NoError(t, ghost.Post(autosave.Message{Kind: autosave.EditRequest, Round: round, From: "ghost"}))
			synctest.Wait()
		}
		assert.Equal(t, []string{"edit-accepted 1", "edit-accepted 1", "edit-busy 2"}, answers)
	})
}

// The editor accepts and dies. Its successor is silent: the asker waits for that one no longer than for any page.
func TestSilentSuccessorHasTheSameTime(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.options.Channel = silentChannel{a.options.Channel} // its program runs on in the test, and would say that it holds the lock
		a.config.OnHandover = undecided
		a.open()
		c := w.prepare("c")
		c.config.Channel = busyChannel{c.channel, time.Minute}
		c.open()
		b := w.tab("b")
		asked := b.asks(t.Context(), autosave.EditOptions{Grace: 2 * time.Second})
		w.sleep(time.Second)
		a.files.Kill()
		a.channel.Deafen(true)
		w.space.Kill("a")
		require.ErrorIs(t, <-asked, autosave.ErrHandoverNoAnswer)
		assert.Less(t, time.Since(w.start), 5*time.Second)
	})
}

// The new editor sends its name before a silent holder could be asked, and sends it twice. The event with the name comes at once.
func TestNameOfTheNewEditorIsNotWaitedFor(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		a.forget()
		locker := w.space.Client("silent") // holds, and answers no question
		_, err := locker.Request(t.Context(), lock.Request{Wants: []lock.Want{{Name: "project", Mode: lock.Exclusive}}, Steal: true})
		require.NoError(t, err)
		synctest.Wait()
		ghost := w.network.Join()
		for range 2 {
			require.NoError(t, ghost.Post(autosave.Message{Kind: autosave.Edits, Holder: lock.Holder{OwnerID: "ghost", LeaseID: "1"}}))
		}
		a.told(`
			0s phase readonly lease-lost
			0s readonly lease-lost lease-lost holder=ghost
		`)
	})
}

// A rival with a lower round gives up. The asker takes the lock by force.
func TestRivalThatGivesUpIsForgotten(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b := w.tab("a"), w.tab("b")
		a.channel.Deafen(true)
		asked := b.asks(t.Context(), force)
		ghost := w.network.Join()
		for _, kind := range []autosave.MessageKind{autosave.EditRival, autosave.EditCancelled} {
			require.NoError(t, ghost.Post(autosave.Message{Kind: kind, Round: "0", From: "ghost", Force: true}))
		}
		require.NoError(t, <-asked)
	})
}
