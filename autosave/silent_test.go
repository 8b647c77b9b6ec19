package autosave_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/lock"
)

// mostOfACall is the longest that a call may take that waits for no person.
const mostOfACall = 15 * time.Second

// mute makes the page's operations with one of these prefixes never answer from the call of begin on, until the test
// ends. Like a stalled file system, they ignore the end of a context.
func (p *page) mute(operations ...string) (begin func()) {
	p.w.Helper()
	unmute := make(chan struct{})
	var silent atomic.Bool
	p.w.Cleanup(func() { close(unmute) })
	p.files.Before = func(operation string) {
		for _, prefix := range operations {
			if silent.Load() && strings.HasPrefix(operation, prefix) {
				<-unmute
			}
		}
	}
	return func() { silent.Store(true) }
}

// ofStore and ofDrafts begin the names of operations: of drafts all but the removal, by which the editor of these tests empties its journal.
var (
	ofStore  = []string{"list index", "list history", "read index", "read history", "write", "remove index", "remove history", "preopen"}
	ofDrafts = []string{"list drafts", "read draft", "seal"}
)

func inTime(t *testing.T, call func() error) error {
	t.Helper()
	answer := make(chan error, 1)
	go func() { answer <- call() }()
	select {
	case err := <-answer:
		return err
	case <-time.After(mostOfACall):
		t.Fatal("the call hangs")
		return nil
	}
}

var background = context.Background()

// silentCalls has the calls that need the store or the drafts, and the codes with which they fail.
var silentCalls = map[string]struct {
	call   func(a *writer, id string) error
	code   error // where the store is silent
	drafts error // where the drafts are
}{
	"FlushNow": {call: func(a *writer, _ string) error { _, err := a.FlushNow(background); return err }, code: autosave.ErrWriteFailed},
	"History":  {call: func(a *writer, _ string) error { _, err := a.History(background); return err }, code: autosave.ErrReadFailed},
	"Read": {call: func(a *writer, _ string) error { _, err := a.Read(background, autosave.Current); return err },
		code: autosave.ErrReadFailed},
	"Read of a draft": {call: func(a *writer, _ string) error { _, err := a.Read(background, "other-1"); return err },
		code: autosave.ErrNotFound, drafts: autosave.ErrReadFailed},
	"Drafts": {call: func(a *writer, _ string) error { _, err := a.Drafts(background); return err }, drafts: autosave.ErrReadFailed},
	"ResolveDraft": {call: func(a *writer, _ string) error { return a.ResolveDraft(background, "other-1", autosave.AsDiscard) },
		code: autosave.ErrNotFound, drafts: autosave.ErrReadFailed},
	"Restore": {call: func(a *writer, id string) error { _, err := a.Restore(background, id); return err }, code: autosave.ErrReadFailed},
	"Pin":     {call: func(a *writer, id string) error { _, err := a.Pin(background, id, "name"); return err }, code: autosave.ErrWriteFailed},
	"Suspend": {call: func(a *writer, _ string) error { return a.Suspend(background) }, code: autosave.ErrWriteFailed},
	"Dispose": {call: func(a *writer, _ string) error { return a.Dispose(background) }, code: autosave.ErrWriteFailed},
}

// No call waits longer than its limit for a store or for drafts that never answer. It fails with its code, and says what is silent.
func TestSilentStorageHoldsNoCall(t *testing.T) {
	for name, c := range silentCalls {
		for what, silent := range map[string]struct {
			operations []string
			code       error
			says       string
		}{
			"the store": {ofStore, c.code, "the store"}, "drafts": {ofDrafts, c.drafts, "the drafts' storage"},
		} {
			t.Run(name+" without "+what, func(t *testing.T) {
				drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
					a := w.author("a", storage)
					mute := a.mute(silent.operations...)
					a.start()
					a.types("saved")
					g, err := a.FlushNow(t.Context())
					require.NoError(t, err)
					mute()
					a.types(", typed")
					err = inTime(t, func() error { return c.call(a, g.ID) })
					if silent.code == nil {
						require.NoError(t, err)
						return
					}
					require.ErrorIs(t, err, silent.code)
					if !errors.Is(err, autosave.ErrNotFound) {
						assert.Contains(t, err.Error(), silent.says+" does not answer")
					}
					if name == "Dispose" {
						assert.Equal(t, []string{"save-failed: saved, typed"}, storedDrafts(t, storage))
					}
				})
			})
		}
	}
}

// Both are silent, and each takes the time that the other leaves.
func TestSilentStorageHoldsNoTeardown(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.author("a", storage)
		mute := a.mute(append(ofStore, ofDrafts...)...)
		a.start()
		a.types("saved")
		w.sleep(time.Second)
		mute()
		a.types(", typed")
		w.records.OnRemove = func(lock.Record) error { time.Sleep(time.Minute); return nil }
		require.ErrorIs(t, inTime(t, func() error { return a.Dispose(context.Background()) }), autosave.ErrWriteFailed)
		w.sleep(2 * time.Minute)
	})
}

// A page whose storage does not answer as it begins is read-only, and asks on.
func TestSilentStorageHoldsNoBeginning(t *testing.T) {
	for what, operations := range map[string][]string{"the store": ofStore, "the drafts' storage": ofDrafts} {
		t.Run(what, func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				a := w.author("a", storage)
				a.mute(operations...)()
				require.NoError(t, inTime(t, a.tryOpen))
				require.ErrorIs(t, a.State().LastErr, autosave.ErrReadFailed)
				assert.Contains(t, a.State().LastErr.Error(), what+" does not answer")
				assert.Equal(t, what == "the store", a.ReadOnly())
			})
		})
	}
}

// A page gets the lock at once, because nobody holds it, or after the grace of a holder that does not answer. Then the store is silent.
func TestSilentStorageHoldsNoRequestToEdit(t *testing.T) {
	for _, held := range []bool{false, true} {
		drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
			holder := w.author("holder", storage).start()
			a := w.author("a", storage)
			a.config.NoStandby = true
			mute := a.mute(ofStore...)
			a.start()
			require.True(t, a.ReadOnly())
			mute()
			if held {
				holder.channel.Deafen(true)
			} else {
				require.NoError(t, holder.Dispose(t.Context()))
			}
			err := inTime(t, func() error { return a.RequestEdit(context.Background(), autosave.EditOptions{Force: true}) })
			require.ErrorIs(t, err, autosave.ErrReadOnly)
			assert.Contains(t, err.Error(), "the store does not answer")
		})
	}
}

// The lock does not answer as a page begins. The page is read-only until it does, and says so.
func TestSilentLockHoldsNoBeginning(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		m, err := lock.NewManager(a.options)
		require.NoError(t, err)
		defer func() { _ = m.Close(context.Background()) }()
		a.config.Store, a.config.Locks = a.store, slowLocks{m, time.Minute}
		require.NoError(t, inTime(t, func() error { a.Saver, err = autosave.New(context.Background(), a.config); return err }))
		assert.True(t, a.ReadOnly())
		require.ErrorIs(t, a.State().LastErr, lock.ErrTimeout)
		require.NoError(t, a.FlushEvents(t.Context()))
		require.ErrorIs(t, last(a, autosave.EventPhase).State.LastErr, lock.ErrTimeout)
		w.sleep(time.Minute)
		assert.False(t, a.ReadOnly())
		require.NoError(t, a.Dispose(t.Context()))
	})
}
