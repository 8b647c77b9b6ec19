//go:build js && wasm

package opfs

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hack-pad/safejs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/jsbridge"
	"github.com/holdfast-dev/holdfast/lock"
)

// image returns the bytes of the `.lock` file, and put replaces them.
func image(t *testing.T, dir *Dir) []byte {
	t.Helper()
	h := raw(t, dir)
	defer h.close()
	content, err := h.read(t.Context(), maxImage)
	require.NoError(t, err)
	return content
}

// read returns the whole content, cut at limit.
func (h *handle) read(ctx context.Context, limit int) ([]byte, error) {
	size, err := call(ctx, h.value, "getSize")
	if err != nil {
		return nil, err
	}
	n, err := size.Int()
	if err != nil || n == 0 {
		return nil, err
	}
	n = min(n, limit)
	buffer, err := jsbridge.NewBytes(n)
	if err != nil {
		return nil, err
	}
	if _, err := call(ctx, h.value, "read", buffer, map[string]any{"at": 0}); err != nil {
		return nil, err
	}
	return jsbridge.Bytes(buffer)
}

func put(t *testing.T, dir *Dir, content []byte) {
	t.Helper()
	h := raw(t, dir)
	defer h.close()
	must(h.value.Call("truncate", 0))
	if len(content) > 0 {
		require.NoError(t, h.write(t.Context(), content))
	}
}

func raw(t *testing.T, dir *Dir) *handle {
	t.Helper()
	for {
		file, err := dir.file(t.Context(), lockFile, true)
		require.NoError(t, err)
		h, err := openHandle(t.Context(), file)
		if err == nil {
			return h
		}
		require.True(t, busy(err), "%v", err)
		require.NoError(t, wait.For(t.Context(), time.Millisecond))
	}
}

func try(c *FileLocks, name string) (lock.Grant, error) {
	r := want(name)
	r.IfAvailable = true
	return c.Request(context.Background(), r)
}

// within asks for a lock and returns it, or the error once the limit has passed.
func within(limit time.Duration, c *FileLocks, name string) (lock.Grant, error) {
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	return c.Request(ctx, want(name))
}

func lost(g lock.Grant) bool { return wait.Closed(g.Lost()) }

// damages are ways in which the file may be damaged while a client holds a lock.
func damages(whole []byte) map[string]func(*testing.T, *Dir) {
	putting := func(content []byte) func(*testing.T, *Dir) {
		return func(t *testing.T, d *Dir) { put(t, d, content) }
	}
	all := map[string]func(*testing.T, *Dir){
		"deleted": func(t *testing.T, d *Dir) {
			require.Eventually(t, func() bool { return d.remove(context.Background(), lockFile) == nil }, prompt, time.Millisecond)
		},
		"garbage":     putting(bytes.Repeat([]byte("garbage "), 100)),
		"other JSON":  putting([]byte(`{"uuid":"00000000-0000-4000-8000-000000000000","expiresAt":99999999999999}`)),
		"not a table": putting(apply(nil, restarting(slot{}, nil, 1<<50, []byte("hello\n")), uncut)),
		"replaced by another client's": putting(apply(nil, restarting(slot{}, nil, 1<<50, (&table{token: 7, queue: []*entry{
			{id: "x", client: lock.NewID(), state: granted, wants: want("x").Wants}}}).encode()), uncut)),
		"an older copy": putting(apply(nil, restarting(slot{}, nil, 5, (&table{}).encode()), uncut)),
	}
	for _, cut := range []int{0, 1, 100, 512, 600, len(whole) / 2, len(whole) - 1} {
		all[fmt.Sprintf("cut to %d of %d", cut, len(whole))] = putting(whole[:max(0, min(cut, len(whole)-1))])
	}
	return all
}

// The holder lives, others wait, and no waiter is granted the holder's lock.
func TestDamageUnderHolder(t *testing.T) {
	first := newClient(t, newRoot())
	_, err := first.Request(t.Context(), want("x"))
	require.NoError(t, err)
	for name := range damages(image(t, first.steps.file.dir)) {
		t.Run(name, func(t *testing.T) {
			root := newRoot()
			holder, other := newClient(t, root), newClient(t, root)
			g, err := holder.Request(t.Context(), want("x"))
			require.NoError(t, err)
			damages(image(t, holder.steps.file.dir))[name](t, holder.steps.file.dir)

			_, err = within(300*time.Millisecond, other, "x")
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.False(t, lost(g))
			require.NoError(t, g.Release(t.Context()))
			begun := time.Now()
			g, err = within(prompt, other, "x")
			require.NoError(t, err)
			t.Log("granted", time.Since(begun), "after the release")
			require.NoError(t, g.Release(t.Context()))
		})
	}
}

// Other clients wait for a silent client until the TTL has passed.
func TestDamageWhileHolderIsFrozen(t *testing.T) {
	root := newRoot()
	frozen, other := newClient(t, root), newClient(t, root)
	other.steps.options.TTL = 2 * time.Second
	_, err := frozen.Request(t.Context(), want("x"))
	require.NoError(t, err)
	frozen.steps.turn.take(context.Background()) // it makes no further step
	defer frozen.steps.turn.give()
	put(t, frozen.steps.file.dir, []byte("garbage"))
	begun := time.Now()
	_, err = try(other, "x")
	assert.ErrorIs(t, err, lock.ErrFallbackConflict)
	assert.ErrorIs(t, err, lock.ErrDenied)
	_, err = within(prompt, other, "x")
	require.NoError(t, err)
	assert.GreaterOrEqual(t, time.Since(begun), 1900*time.Millisecond)
}

func TestDamageWithoutClients(t *testing.T) {
	c := newClient(t, newRoot())
	put(t, c.steps.file.dir, []byte("garbage"))
	g, err := try(c, "x")
	require.NoError(t, err)
	require.NoError(t, g.Release(t.Context()))
}

func TestNewerVersion(t *testing.T) {
	c := newClient(t, newRoot())
	c.steps.options.TTL = time.Second
	text := []byte("text of a later version")
	head := fmt.Appendf(nil, "%s%d number=8 bytes=%d", magic, version+1, len(text))
	put(t, c.steps.file.dir, fmt.Appendf(head, " %s\n%s", checksum(head, text), text))
	begun := time.Now()
	_, err := try(c, "x")
	require.ErrorIs(t, err, lock.ErrFallbackConflict)
	assert.Contains(t, err.Error(), "reload")
	_, err = within(prompt, c, "x")
	require.NoError(t, err)
	assert.GreaterOrEqual(t, time.Since(begun), 900*time.Millisecond)
}

func TestDirectoryInPlaceOfLockFile(t *testing.T) {
	c := newClient(t, newRoot())
	folder := must(c.steps.file.dir.open(t.Context()))
	must(call(t.Context(), folder, "getDirectoryHandle", lockFile, map[string]any{"create": true}))
	_, err := try(c, "x")
	require.ErrorIs(t, err, lock.ErrUnsupported)
	assert.Contains(t, err.Error(), "remove it")
	must(call(t.Context(), folder, "removeEntry", lockFile))
	_, err = try(c, "x")
	require.NoError(t, err)
}

// exception makes a DOMException.
func exception(name string) safejs.Value {
	return must(must(safejs.Global().Get("DOMException")).New("planted", name))
}

// prototype is what the objects of a class have in common.
func prototype(class string) safejs.Value {
	return must(must(safejs.Global().Get(class)).Get("prototype"))
}

// replace sets a property for the duration of the test.
func replace(t *testing.T, object safejs.Value, name, body string, argument any) {
	t.Helper()
	before := must(object.Get(name))
	function := must(must(must(safejs.Global().Get("Function")).New("argument", "before", body)).Invoke(argument, before))
	require.NoError(t, object.Set(name, function))
	t.Cleanup(func() { require.NoError(t, object.Set(name, before)) })
}

func TestQuota(t *testing.T) {
	c := newClient(t, newRoot())
	g, err := c.Request(t.Context(), want("held"))
	require.NoError(t, err)
	now := time.Now()
	r := lock.Record{Resource: "held", LeaseID: "l", AcquiredAt: now, ExpiresAt: now.Add(time.Minute)}
	r.Token, err = c.Claim(t.Context(), r, false)
	require.NoError(t, err)
	t.Run("full", func(t *testing.T) {
		handles := prototype("FileSystemSyncAccessHandle")
		replace(t, handles, "write", "return function () { throw argument }", exception(noQuota))
		_, err := try(c, "x")
		require.ErrorIs(t, err, lock.ErrUnsupported)
		assert.Contains(t, err.Error(), "full")
		err = c.Renew(t.Context(), r)
		require.ErrorIs(t, err, lock.ErrRenewFailed)
		assert.False(t, lost(g))
	})
	require.NoError(t, c.Renew(t.Context(), r))
	x, err := try(c, "x")
	require.NoError(t, err)
	assert.False(t, lost(g))
	require.NoError(t, x.Release(t.Context()))
	require.NoError(t, g.Release(t.Context()))
}

func TestNoStorage(t *testing.T) {
	manager := prototype("StorageManager")
	handles := prototype("FileSystemFileHandle")
	for name, plant := range map[string]func(*testing.T){
		"private window": func(t *testing.T) {
			replace(t, manager, "getDirectory", "return function () { return Promise.reject(argument) }", exception("SecurityError"))
		},
		"secure pages":     func(t *testing.T) { replace(t, manager, "getDirectory", "return undefined", nil) },
		"dedicated worker": func(t *testing.T) { replace(t, handles, "createSyncAccessHandle", "return undefined", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, newRoot())
			plant(t)
			_, err := try(c, "x")
			require.ErrorIs(t, err, lock.ErrUnsupported)
			_, err = within(prompt, c, "x")
			require.ErrorIs(t, err, lock.ErrUnsupported)
			_, err = c.Claim(t.Context(), lock.Record{}, false)
			require.ErrorIs(t, err, lock.ErrUnsupported)
			t.Log(err)
			if name != "secure pages" {
				assert.Contains(t, err.Error(), strings.Fields(name)[1])
			}
		})
	}
}

// The browser never answers that a file is open, or answers too late. The file is opened again, and a late handle is
// closed.
func TestBrowserDoesNotAnswerOpen(t *testing.T) {
	handles := prototype("FileSystemFileHandle")
	for _, through := range []string{"this program", "a helper"} {
		for _, file := range []string{"the table", "liveness"} {
			t.Run(file+" by "+through, func(t *testing.T) {
				if through == "a helper" {
					withHelperHere(t)
				}
				root := newRoot()
				c := newClient(t, root)
				t.Run("stuck", func(t *testing.T) {
					replace(t, handles, "createSyncAccessHandle", `let stuck = false
						return function () {
							const opening = before.call(this)
							if (stuck || (this.name === ".lock") !== argument) return opening
							stuck = true
							return opening.then((handle) => {
								handle.close()
								return new Promise((settle) => { globalThis.openLate = () => settle(before.call(this)) })
							})
						}`, file == "the table")
					g, err := c.Request(t.Context(), want("x"))
					require.NoError(t, err)
					require.NoError(t, g.Release(t.Context()))
				})
				must(safejs.Global().Call("openLate"))
				_, err := within(prompt, newClient(t, root), "x")
				require.NoError(t, err)
			})
		}
	}
}

func TestRootIsChecked(t *testing.T) {
	for _, root := range []string{"", "/", "a//b", "a/", "../a", "a/./b", `a\b`} {
		_, err := NewFileLocks(root, Options{Tables: newTables()})
		assert.ErrorIs(t, err, lock.ErrInvalidArgument, "%q", root)
	}
}

// A lease whose lock another mechanism keeps gets its record back at its next renewal, whatever happened to the file,
// and nobody reports another holder.
func TestDamageUnderRecord(t *testing.T) {
	now := time.Now()
	claim := func(t *testing.T, c *FileLocks) (r lock.Record) {
		r = lock.Record{Resource: "x", LeaseID: lock.NewID(), OwnerName: "somebody", AcquiredAt: now, ExpiresAt: now.Add(time.Minute)}
		var err error
		r.Token, err = c.Claim(t.Context(), r, false)
		require.NoError(t, err)
		return r
	}
	first := newClient(t, newRoot())
	claim(t, first)
	for name := range damages(image(t, first.steps.file.dir)) {
		t.Run(name, func(t *testing.T) {
			root := newRoot()
			holder, other := newClient(t, root), newClient(t, root)
			r := claim(t, holder)
			damages(image(t, holder.steps.file.dir))[name](t, holder.steps.file.dir)

			r.ExpiresAt = now.Add(2 * time.Minute)
			require.NoError(t, holder.Renew(t.Context(), r))
			found, ok, err := other.Read(t.Context(), "x")
			require.NoError(t, err)
			require.True(t, ok)
			assert.Equal(t, r.LeaseID, found.LeaseID)
			assert.Equal(t, r.ExpiresAt.UnixMilli(), found.ExpiresAt.UnixMilli())
			assert.Equal(t, r.Token, found.Token)
			require.NoError(t, holder.Remove(t.Context(), r))

			assert.Greater(t, claim(t, other).Token, r.Token, "tokens rise although the file was lost")
		})
	}
}
