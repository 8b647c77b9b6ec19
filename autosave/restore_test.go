package autosave_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/lock"
)

// restoring is a page with the generations "one" and "one two", whose commits take a second.
func (w *world) restoring() (a *page, first autosave.Generation) {
	a = w.slowTab("a")
	a.typed("one")
	first, err := a.FlushNow(w.Context())
	require.NoError(w, err)
	a.typed(" two")
	_, err = a.FlushNow(w.Context())
	require.NoError(w, err)
	a.forget()
	return a, first
}

// restore begins to restore and loads the content, as a page does.
func (p *page) restore(ctx context.Context, g autosave.Generation) <-chan error {
	result := make(chan error, 1)
	go func() {
		content, err := p.Restore(ctx, g.ID)
		if err == nil {
			p.mu.Lock()
			p.text = string(content)
			p.mu.Unlock()
		}
		result <- err
	}()
	return result
}

// agree fails unless the page shows what is saved, a while later.
func (p *page) agree(text string) {
	p.w.Helper()
	p.w.sleep(time.Minute)
	assert.Equal(p.w, text, p.shows())
	assert.Equal(p.w, text, p.w.saved())
	assert.Zero(p.w, p.State().PendingBytes)
}

func TestFlushDuringRestore(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, first := w.restoring()
		restored := a.restore(t.Context(), first)
		w.sleep(500 * time.Millisecond)
		g, err := a.FlushNow(t.Context())
		require.NoError(t, err)
		require.NoError(t, <-restored)
		assert.Equal(t, int64(3), g.Bytes, "the generation that was restored")
		a.agree("one")
		assert.Equal(t, []string{"one", "one two", "one"}, w.generations())
	})
}

func TestTypingDuringRestore(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, first := w.restoring()
		restored := a.restore(t.Context(), first)
		w.sleep(500 * time.Millisecond)
		a.typed(" three")
		g, err := a.FlushNow(t.Context())
		require.NoError(t, err)
		content, err := a.Read(t.Context(), g.ID)
		require.NoError(t, err)
		assert.Equal(t, "one two three", string(content))
		require.NoError(t, <-restored)
		a.agree("one")
		assert.Equal(t, []string{"one", "one two three", "one", "one two", "one"}, w.generations())
	})
}

// Somebody types all the time: the restore fails, and every keystroke is saved.
func TestTypingWithoutEndDuringRestore(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, first := w.restoring()
		restored := a.restore(t.Context(), first)
		text := "one two"
		for range 150 {
			w.sleep(100 * time.Millisecond)
			a.typed(".")
			text += "."
		}
		require.ErrorIs(t, <-restored, autosave.ErrWriteFailed)
		a.agree(text)
	})
}

// Somebody types whenever the restored content is written, and at no other time. The restore fails before the call has used up its time.
func TestTypingAtEachAttemptToRestore(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, first := w.restoring()
		began, writes := time.Now(), 0
		a.files.Before = func(operation string) {
			if strings.HasPrefix(operation, "write history") {
				time.Sleep(100 * time.Millisecond)
				if writes++; writes%2 == 1 && writes < 11 { // the page's own text is each second write
					a.typed(".")
				}
			}
		}
		err := <-a.restore(t.Context(), first)
		require.ErrorIs(t, err, autosave.ErrWriteFailed)
		assert.ErrorContains(t, err, "stop typing")
		assert.Less(t, time.Since(began), 10*time.Second)
		a.agree("one two.....")
	})
}

func TestHandoverDuringRestore(t *testing.T) {
	for name, typed := range map[string]string{"as it is": "", "after a keystroke": "!"} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a, first := w.restoring()
				b := w.tab("b")
				restored := a.restore(t.Context(), first)
				w.sleep(500 * time.Millisecond)
				if typed != "" {
					a.typed(typed)
				}
				require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{}))
				if typed == "" {
					require.NoError(t, <-restored)
				} else {
					require.ErrorIs(t, <-restored, autosave.ErrReadOnly)
				}
				w.sleep(time.Second)
				assert.Equal(t, a.shows(), w.saved())
				assert.Equal(t, a.shows(), b.shows())
				assert.Contains(t, w.generations(), "one two"+typed)
			})
		})
	}
}

// The handover begins while the restore waits for the backup of what was typed.
func TestHandoverBeforeRestore(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, first := w.restoring()
		b := w.tab("b")
		a.typed("!")
		restored := a.restore(t.Context(), first)
		w.sleep(500 * time.Millisecond)
		require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{}))
		require.ErrorIs(t, <-restored, autosave.ErrReadOnly)
		assert.Equal(t, "one two!", b.shows())
	})
}

// The page is put to sleep in the middle of a restore, and wakes.
func TestSuspendDuringRestore(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, first := w.restoring()
		restored := a.restore(t.Context(), first)
		w.sleep(500 * time.Millisecond)
		require.NoError(t, a.Suspend(t.Context()))
		require.NoError(t, <-restored)
		require.NoError(t, a.Resume(t.Context()))
		a.agree("one")
	})
}

// The index of the restored generation is written, and the answer is lost.
func TestRestoreWhoseAnswerIsLost(t *testing.T) {
	for fault, index := range map[string]autosavetest.Fault{"lied": autosavetest.Lied, "torn": autosavetest.Torn, "refused": autosavetest.Refused} {
		t.Run(fault, func(t *testing.T) {
			for step := range 4 {
				virtual(t, func(t *testing.T, w *world) {
					a, first := w.restoring()
					a.files.Break(step, index, false)
					_, err := a.Restore(t.Context(), first.ID)
					if err != nil {
						a.agree("one two")
					}
				})
			}
		})
	}
}

// The caller gives up while the content is committed. The page does not load it.
func TestRestoreThatIsAborted(t *testing.T) {
	for _, after := range []time.Duration{0, 500 * time.Millisecond, 999 * time.Millisecond, time.Second, 1500 * time.Millisecond} {
		for name, typed := range map[string]string{"clean": "", "dirty": "!"} {
			t.Run(name+" "+after.String(), func(t *testing.T) {
				virtual(t, func(t *testing.T, w *world) {
					a, first := w.restoring()
					if typed != "" {
						a.typed(typed)
					}
					ctx, stop := context.WithTimeout(t.Context(), after)
					defer stop()
					began := time.Now()
					if err := <-a.restore(ctx, first); err != nil {
						require.ErrorIs(t, err, context.DeadlineExceeded)
						assert.Equal(t, after, time.Since(began))
						a.agree("one two" + typed)
					} else {
						a.agree("one")
					}
				})
			})
		}
	}
}

// The lock is lost while the restored content is committed, and comes back.
func TestLockLostDuringRestore(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, first := w.restoring()
		restored := a.restore(t.Context(), first)
		w.sleep(500 * time.Millisecond)
		lease := w.stealer()
		require.ErrorIs(t, <-restored, autosave.ErrReadOnly)
		w.sleep(2 * time.Second)
		require.NoError(t, lease.Release(t.Context()))
		w.sleep(5 * time.Second)
		assert.False(t, a.ReadOnly())
		assert.Equal(t, a.shows(), w.saved())
		if a.shows() != "one two" {
			assert.Contains(t, a.offered(), "one two")
		}
	})
}

func TestTwoRestoresAtOnce(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, first := w.restoring()
		all, err := a.History(t.Context())
		require.NoError(t, err)
		one := a.restore(t.Context(), first)
		w.sleep(100 * time.Millisecond)
		two := a.restore(t.Context(), all[0])
		require.NoError(t, <-one)
		require.NoError(t, <-two)
		a.agree("one two")
	})
}

// Nothing is marked, and the first save fails. It is tried again.
func TestFirstFlushThatFailsIsTriedAgain(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		a.files.Fail()
		_, err := a.FlushNow(t.Context())
		require.ErrorIs(t, err, autosave.ErrWriteFailed)
		assert.Equal(t, autosave.PhaseError, a.State().Phase)
		assert.NotZero(t, a.State().PendingBytes)
		a.files.Mend()
		w.sleep(time.Minute)
		assert.Equal(t, autosave.PhaseIdle, a.State().Phase)
		require.NoError(t, a.State().LastErr)
		assert.Equal(t, []string{""}, w.generations())
	})
}

// A save hangs when the page loses the lock. Another page saves, the first one loads that, and then the save fails or
// succeeds: nothing of it counts any more.
func TestLateEndOfASaveUnderAFormerLease(t *testing.T) {
	for name, fault := range map[string]autosavetest.Fault{"fails": autosavetest.Refused, "succeeds": 0} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a := w.prepare("a")
				hang := make(chan struct{})
				first := true
				a.files.Before = func(operation string) {
					if strings.HasPrefix(operation, "write history") && first {
						first = false
						<-hang
					}
				}
				a.open()
				a.typed("mine")
				w.sleep(time.Second)
				if fault != 0 {
					a.files.Break(0, fault, false)
				}
				lease := w.stealer()
				w.savedUnder(lease.Token, "theirs")
				require.NoError(t, lease.Release(t.Context()))
				w.sleep(time.Millisecond)
				close(hang)
				w.sleep(time.Minute)
				assert.False(t, a.ReadOnly())
				assert.Equal(t, "theirs", a.shows())
				assert.Equal(t, "theirs", w.saved())
				assert.Contains(t, a.offered(), "mine")
				g, err := a.FlushNow(t.Context())
				require.NoError(t, err)
				content, err := a.Read(t.Context(), g.ID)
				require.NoError(t, err)
				assert.Equal(t, "theirs", string(content))
			})
		})
	}
}

// The disk is full when the page opens: a restore fails like a save.
func TestRestoreOnAFullDisk(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		b, disk := w.preparedOnFullDisk()
		b.open()
		all, err := b.History(t.Context())
		require.NoError(t, err)
		_, err = b.Restore(t.Context(), all[0].ID)
		require.ErrorIs(t, err, autosave.ErrQuota)
		assert.Equal(t, int32(2), disk.fences.Load(), "at the start and for the restore")
		disk.full.Store(false)
		_, err = b.Restore(t.Context(), all[0].ID)
		require.NoError(t, err)
		assert.Equal(t, []string{"before", "before"}, w.generations())
	})
}

// The lock is lost while the page excludes the previous editor: the reason stays.
func TestLockLostWhileShuttingOut(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		b, disk := w.preparedOnFullDisk()
		b.files.Before = func(string) {
			if !disk.full.Load() {
				time.Sleep(time.Second)
			}
		}
		b.open()
		disk.full.Store(false)
		w.sleep(1100 * time.Millisecond)
		w.stealer()
		w.sleep(time.Minute)
		assert.True(t, b.ReadOnly())
		require.ErrorIs(t, b.State().LastErr, lock.ErrLost)
		assert.Empty(t, b.offered(), "nothing was typed")
	})
}

// The caller gives up the restore and the page ends before the content is committed. The page's own text is the content.
func TestDisposeAfterARestoreThatIsAborted(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, first := w.restoring()
		ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer stop()
		require.ErrorIs(t, <-a.restore(ctx, first), context.DeadlineExceeded)
		require.NoError(t, a.Dispose(t.Context()))
		assert.Equal(t, "one two", w.saved())
	})
}

// The text of the page cannot be saved, so a restore fails at once, with that reason.
func TestRestoreFailsIfThePresentTextCannotBeSaved(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		a.typed("one")
		first, err := a.FlushNow(t.Context())
		require.NoError(t, err)
		a.typed(" two")
		w.disk.SetCapacity(w.disk.Used())
		began := time.Now()
		_, err = a.Restore(t.Context(), first.ID)
		require.ErrorIs(t, err, autosave.ErrQuota)
		assert.Zero(t, time.Since(began))
		w.disk.SetCapacity(0)
		w.sleep(time.Minute)
		assert.Equal(t, "one two", w.saved(), "the restore is over")
	})
}
