//go:build js && wasm

package opfs

import (
	"context"
	"testing"
	"time"

	"github.com/hack-pad/safejs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/jsbridge"
	"github.com/holdfast-dev/holdfast/lock"
)

// cleared gives a client an empty storage, as if the site's data had been cleared under it: the files that it has open are not in
// it. The client does not look at the table until resume is called. next begins afterwards, and knows nothing of former locks.
func cleared(t *testing.T, former *FileLocks) (next *FileLocks, resume func()) {
	next = newClient(t, former.steps.file.dir.String())
	dir, err := NewDir(newRoot())
	require.NoError(t, err)
	require.True(t, former.steps.turn.take(t.Context()))
	must(former.steps.file.tables.Call("keep", false)) // the file of locks is closed
	must(former.steps.file.tables.Call("keep", true))
	for _, c := range []*FileLocks{former, next} {
		c.steps.file.dir, c.steps.file.open = dir, false
		c.steps.liveness.alive.dir = dir.Sub(aliveFolder)
	}
	return next, former.steps.turn.give
}

func newRecord(name string, mode lock.Mode) lock.Record {
	now := time.Now()
	return lock.Record{Resource: name, LeaseID: lock.NewID(), OwnerID: lock.NewID(), AcquiredAt: now, ExpiresAt: now.Add(time.Minute), TTL: time.Minute, Mode: mode}
}

func claimed(t *testing.T, c *FileLocks, r lock.Record) lock.Record {
	token, err := c.Claim(t.Context(), r, false)
	require.NoError(t, err)
	r.Token = token
	return r
}

// The storage is cleared, and another client acquires the lock before the holder looks: the holder loses it, not the other.
func TestHolderLosesItsLockAfterClear(t *testing.T) {
	holder := newClient(t, newRoot())
	lease := newRecord("x", lock.Exclusive)
	g := hold(t, holder, "x")
	lease = claimed(t, holder, lease)
	next, resume := cleared(t, holder)
	h, err := try(next, "x")
	require.NoError(t, err)
	later := claimed(t, next, newRecord("x", lock.Exclusive))
	resume()
	require.ErrorIs(t, holder.Renew(t.Context(), lease), lock.ErrLost)
	assert.True(t, lost(g))
	makeStep(t, next)
	assert.False(t, lost(h))
	require.NoError(t, next.Renew(t.Context(), later))
	require.NoError(t, h.Release(t.Context()))
	_, err = try(holder, "x")
	require.NoError(t, err)
}

// The storage is cleared, and the holder looks first: it keeps the lock, and others wait for it.
func TestHolderKeepsItsLockAfterClear(t *testing.T) {
	holder := newClient(t, newRoot())
	g := hold(t, holder, "x")
	next, resume := cleared(t, holder)
	resume()
	makeStep(t, holder)
	_, err := try(next, "x")
	require.ErrorIs(t, err, lock.ErrDenied)
	makeStep(t, holder)
	assert.False(t, lost(g))
	require.NoError(t, g.Release(t.Context()))
	h, err := try(next, "x")
	require.NoError(t, err)
	require.NoError(t, h.Release(t.Context()))
}

// The storage is cleared, and the holder looks while the first client after the clear recovers the new table: it keeps the lock.
func TestHolderThatLooksDuringRecoveryKeepsItsLockAfterClear(t *testing.T) {
	holder := newClient(t, newRoot())
	g := hold(t, holder, "x")
	next, resume := cleared(t, holder)
	next.steps.hook = func(step string) {
		if step == "closed" {
			next.steps.hook = nil
			resume()
			makeStep(t, holder)
		}
	}
	_, err := try(next, "x")
	require.ErrorIs(t, err, lock.ErrDenied)
	makeStep(t, holder)
	assert.False(t, lost(g))
}

// The same for a lease over Web Locks, of which the table has only the record.
func TestRecordIsLostAfterClear(t *testing.T) {
	holder := newClient(t, newRoot())
	lease := claimed(t, holder, newRecord("x", lock.Exclusive))
	next, resume := cleared(t, holder)
	later := claimed(t, next, newRecord("x", lock.Exclusive))
	resume()
	require.ErrorIs(t, holder.Renew(t.Context(), lease), lock.ErrLost)
	require.NoError(t, next.Renew(t.Context(), later))
	require.NoError(t, holder.Remove(t.Context(), lease))
	require.NoError(t, next.Remove(t.Context(), later))
}

// The same for a page whose helper has ended since the clear, so that the page does not find its liveness file removed under it. The table
// of the other client may also have a lower number, because the clock was set back.
func TestRecordIsLostAfterClearWithItsHelper(t *testing.T) {
	for name, number := range map[string]int64{"later": 0, "clock set back": 1 << 60} {
		t.Run(name, func(t *testing.T) {
			end := withMortalHelper(t)
			holder := newClient(t, newRoot())
			lease := claimed(t, holder, newRecord("x", lock.Exclusive))
			g := hold(t, holder, "y")
			next, resume := cleared(t, holder)
			end()
			holder.steps.number += number
			later := claimed(t, next, newRecord("x", lock.Exclusive))
			h := hold(t, next, "y")
			resume()
			require.ErrorIs(t, holder.Renew(t.Context(), lease), lock.ErrLost)
			makeStep(t, next)
			assert.True(t, lost(g))
			assert.False(t, lost(h))
			require.NoError(t, next.Renew(t.Context(), later))
		})
	}
}

// The page looks first: it keeps the lock, and others wait for it.
func TestRestoredRecordExcludesAfterClearWithItsHelper(t *testing.T) {
	end := withMortalHelper(t)
	holder := newClient(t, newRoot())
	lease := claimed(t, holder, newRecord("x", lock.Exclusive))
	next, resume := cleared(t, holder)
	end()
	resume()
	require.NoError(t, holder.Renew(t.Context(), lease))
	_, err := next.Claim(t.Context(), newRecord("x", lock.Exclusive), false)
	require.ErrorIs(t, err, lock.ErrDenied)
	require.NoError(t, holder.Renew(t.Context(), lease))
	require.NoError(t, holder.Remove(t.Context(), lease))
	claimed(t, next, newRecord("x", lock.Exclusive))
}

// The other client has claimed its lease in a table that it recovers, and the holder looks meanwhile.
func TestRecordIsLostInRecoveryAfterClear(t *testing.T) {
	holder := newClient(t, newRoot())
	lease := claimed(t, holder, newRecord("x", lock.Exclusive))
	next, resume := cleared(t, holder)
	next.steps.hook = func(step string) {
		if step == "closed" {
			next.steps.hook = nil
			resume()
			makeStep(t, holder)
		}
	}
	later := claimed(t, next, newRecord("x", lock.Exclusive))
	require.ErrorIs(t, holder.Renew(t.Context(), lease), lock.ErrLost)
	require.NoError(t, next.Renew(t.Context(), later))
}

// A client that does not know of the clear looks for clients that are gone. Its handle of the folder is from before the clear. In Chromium,
// such a handle lists the present files, and opens and removes even those that are open.
func TestFormerClientRemovesNoFileAfterClear(t *testing.T) {
	former := newClient(t, newRoot())
	hold(t, former, "x")
	next, resume := cleared(t, former)
	defer resume()
	hold(t, next, "x")
	id := next.steps.liveness.alive.id
	replace(t, prototype("FileSystemFileHandle"), "createSyncAccessHandle",
		"return async function () { return this.name === argument ? { close() {} } : before.call(this) }", id)
	removals := make(chan struct{}, 1)
	var scope jsbridge.Scope
	defer scope.Release()
	removed := must(scope.Func(func([]safejs.Value) any { signal(removals); return nil }))
	replace(t, prototype("FileSystemDirectoryHandle"), "removeEntry", "return async function () { argument() }", removed)
	assert.Contains(t, must(former.steps.liveness.alive.others(t.Context())), id)
	assert.False(t, former.steps.liveness.alive.gone(t.Context(), id))
	assert.Empty(t, removals)
}

// A client whose file of the table was removed while it was open drops the handle, which Chromium keeps open. The client's former handle of
// the folder then leads to a file that nobody can open.
func TestTableIsOpenedAnewWhereAFormerHandleKeepsItOpen(t *testing.T) {
	c := newClient(t, newRoot())
	g := hold(t, c, "x")
	former, err := NewDir(newRoot())
	require.NoError(t, err)
	file := must(former.file(t.Context(), lockFile, true))
	dropped := must(openHandle(t.Context(), file))
	defer dropped.close()
	require.True(t, c.steps.turn.take(t.Context()))
	must(c.steps.file.tables.Call("keep", false)) // the file is closed
	must(c.steps.file.tables.Call("keep", true))
	c.steps.file.file, c.steps.file.dir.handle = file, former.handle
	c.steps.turn.give()

	ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	require.NoError(t, c.steps.visit(ctx, nothing))
	assert.False(t, lost(g))
}

// A record that its holder has restored is a lock for those that begin after the clear, until it is removed.
func TestRestoredRecordExcludesAfterClear(t *testing.T) {
	holder := newClient(t, newRoot())
	lease := claimed(t, holder, newRecord("x", lock.Exclusive))
	next, resume := cleared(t, holder)
	resume()
	require.NoError(t, holder.Renew(t.Context(), lease))
	for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
		_, err := next.Claim(t.Context(), newRecord("x", mode), false)
		require.ErrorIs(t, err, lock.ErrDenied)
	}
	_, err := try(next, "x")
	require.ErrorIs(t, err, lock.ErrDenied)
	claimed(t, next, newRecord("y", lock.Exclusive))
	require.NoError(t, holder.Renew(t.Context(), lease))
	require.NoError(t, holder.Remove(t.Context(), lease))
	later := claimed(t, next, newRecord("x", lock.Exclusive))
	assert.Greater(t, later.Token, lease.Token)
}

// Shared leases admit each other after the clear.
func TestRestoredSharedRecordAdmitsSharedOnes(t *testing.T) {
	holder := newClient(t, newRoot())
	lease := claimed(t, holder, newRecord("x", lock.Shared))
	next, resume := cleared(t, holder)
	resume()
	require.NoError(t, holder.Renew(t.Context(), lease))
	claimed(t, next, newRecord("x", lock.Shared))
	_, err := next.Claim(t.Context(), newRecord("x", lock.Exclusive), false)
	require.ErrorIs(t, err, lock.ErrDenied)
	require.NoError(t, holder.Renew(t.Context(), lease))
}

// A page that locked in the browser before the clear, and held nothing then, gets a lock that another page holds by now. The holder
// learns at its next renewal that there is a later one, which was renewed.
func TestLaterRecordEndsTheEarlierLease(t *testing.T) {
	root := newRoot()
	holder, other := newClient(t, root), newClient(t, root)
	lease := claimed(t, holder, newRecord("x", lock.Exclusive))
	later := claimed(t, other, newRecord("x", lock.Exclusive))
	later.ExpiresAt = later.ExpiresAt.Add(time.Second)
	require.NoError(t, other.Renew(t.Context(), later))
	require.ErrorIs(t, holder.Renew(t.Context(), lease), lock.ErrLost)
	require.NoError(t, other.Renew(t.Context(), later))
	shared, alone := claimed(t, holder, newRecord("y", lock.Shared)), claimed(t, other, newRecord("y", lock.Shared))
	require.NoError(t, holder.Renew(t.Context(), shared))
	require.NoError(t, other.Renew(t.Context(), alone))
	state, err := holder.Query(context.Background())
	require.NoError(t, err)
	assert.Empty(t, append(state.Held, state.Pending...), "the record of a Web Lock is no entry of the table")
}

// The site's data was not cleared. A client is granted the lock, which another one steals before the first has claimed its record.
// The record of the first comes later, and stands until that client learns of the steal or is found to be gone.
func TestLateRecordDoesNotEndTheLeaseOfAStealer(t *testing.T) {
	root := newRoot()
	stealer, former := newClient(t, root), newClient(t, root)
	lease := newRecord("x", lock.Exclusive)
	token, err := stealer.Claim(t.Context(), lease, true)
	require.NoError(t, err)
	lease.Token = token
	late := claimed(t, former, newRecord("x", lock.Exclusive))
	lease.ExpiresAt = time.Now().Add(lease.TTL)
	require.NoError(t, stealer.Renew(t.Context(), lease))
	require.NoError(t, former.Remove(t.Context(), late))
	require.NoError(t, stealer.Renew(t.Context(), lease))
}

// The site's data was not cleared. A page steals the browser's lock from a frozen page, which has its entry over the file, too. The entry
// delays no lease after that of the stealer.
func TestStolenEntryDelaysNoLease(t *testing.T) {
	root := newRoot()
	frozen, stealer, next := newClient(t, root), newClient(t, root), newClient(t, root)
	g := hold(t, frozen, "x")
	claimed(t, frozen, newRecord("x", lock.Exclusive))
	require.True(t, frozen.steps.turn.take(t.Context()))
	stolen := newRecord("x", lock.Exclusive)
	_, err := stealer.Claim(t.Context(), stolen, true)
	require.NoError(t, err)
	require.NoError(t, stealer.Remove(t.Context(), stolen))
	later := claimed(t, next, newRecord("x", lock.Exclusive))
	require.NoError(t, next.Remove(t.Context(), later))
	free(t, hold(t, next, "x"))
	frozen.steps.turn.give()
	makeStep(t, frozen)
	assert.True(t, lost(g))
}

// The lock of a client is stolen over the file before the client claims its lease. The client takes nothing from the new holder.
func TestStealerThatLostItsLockTakesNothing(t *testing.T) {
	root := newRoot()
	stolen, stealer, next := newClient(t, root), newClient(t, root), newClient(t, root)
	request := lock.Request{Wants: []lock.Want{{Name: "x", Mode: lock.Exclusive}}, Steal: true}
	_, err := stolen.Request(t.Context(), request)
	require.NoError(t, err)
	g, err := stealer.Request(t.Context(), request)
	require.NoError(t, err)
	lease := newRecord("x", lock.Exclusive)
	_, err = stealer.Claim(t.Context(), lease, true)
	require.NoError(t, err)
	_, err = stolen.Claim(t.Context(), newRecord("x", lock.Exclusive), true)
	require.NoError(t, err)
	_, err = try(next, "x")
	require.ErrorIs(t, err, lock.ErrDenied)
	require.NoError(t, stealer.Renew(t.Context(), lease))
	assert.False(t, lost(g))
}

// A folder is being opened when the client forgets all handles, because the site's data was cleared. Later calls do not get the handle
// that was on its way.
func TestForgottenFolderIsOpenedAnew(t *testing.T) {
	replace(t, prototype("FileSystemDirectoryHandle"), "getDirectoryHandle", `let first = true
		return function (...args) {
			if (!first) return before.apply(this, args)
			first = false
			return new Promise((done) => { self.answer = () => done("former") })
		}`, nil)
	dir := must(NewDir("test " + lock.NewID()))
	opened := make(chan safejs.Value, 1)
	go func() { opened <- must(dir.open(context.Background())) }()
	for must(safejs.Global().Get("answer")).IsUndefined() {
		require.NoError(t, wait.For(t.Context(), time.Millisecond))
	}
	dir.forget()
	must(safejs.Global().Call("answer"))
	<-opened
	assert.Equal(t, safejs.TypeObject, must(dir.open(t.Context())).Type())
}
