package remote

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/lock"
)

// history keeps on this machine the generations that this machine has saved. The server has the authoritative content, so
// no failure of the history keeps a page from editing. After a failure a generation is missing, and the next commit tries again.
//
// Its fencing tokens are used on this machine only and come from wall time. The server's tokens would not do: they start again after the
// server was wiped or restored, and a history with higher tokens would then refuse them forever.
type history struct {
	store  autosave.Store // nil keeps nothing
	tokens lock.WallTokens
	turn   chan struct{} // capacity 1: filled by the goroutine that fences

	mu     sync.Mutex // never held while the storage works
	server int64      // the server's token of the lease for which local was made
	local  int64
}

func newHistory(store autosave.Store) history {
	return history{store: store, tokens: lock.WallTokens{Clock: lock.SystemClock{}}, turn: make(chan struct{}, 1)}
}

// historyLimit bounds each operation: a storage that does not answer must not delay the acknowledgement of a save.
const historyLimit = 5 * time.Second

// fence excludes earlier editors of this machine and returns the token to commit under; ok is false if that failed.
func (h *history) fence(ctx context.Context, server int64) (local int64, ok bool) {
	if h.store == nil {
		return 0, false
	}
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return 0, false
	}
	defer func() { <-h.turn }()
	if local, ok = h.fenced(server); ok {
		return local, true
	}
	ctx, stop := context.WithTimeout(ctx, historyLimit)
	defer stop()
	local, err := h.tokens.Claim(ctx, lock.Record{}, true)
	if err == nil {
		err = h.store.Fence(ctx, local)
	}
	var later *autosave.LaterToken
	if errors.As(err, &later) { // the clock was set back
		local = later.Token + 1
		err = h.store.Fence(ctx, local)
	}
	if err != nil {
		return 0, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.server, h.local = server, local
	return local, true
}

// fenced returns the token under which the lease with the server's token commits; ok is false if fence has not made
// one.
func (h *history) fenced(server int64) (local int64, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.local, h.server == server
}

// unwritable is the error if fence has made no token. The id is that of the generation to change, or "".
func unwritable(id string) error {
	return &autosave.Error{Code: autosave.CodeWriteFailed, Operation: autosave.OpSave, Resource: id,
		Detail: "the history on this machine cannot be written; try again"}
}

// commit keeps a content that the server has saved.
func (h *history) commit(ctx context.Context, c autosave.Commit) (autosave.Generation, error) {
	server, committed, progress := c.Token, c.Committed, c.Progress
	local, ok := h.fence(ctx, server)
	if !ok {
		return autosave.Generation{}, unwritable("")
	}
	c.Token = local
	if committed != nil {
		c.Committed = func(g autosave.Generation) {
			g.Token = server
			committed(g)
		}
	}
	if progress != nil {
		c.Progress = func(p autosave.Phase) {
			if p != autosave.PhaseWriting { // that phase was the server's
				progress(p)
			}
		}
	}
	ctx, stop := context.WithTimeout(ctx, historyLimit)
	defer stop()
	g, err := h.store.Commit(ctx, c)
	g.Token = server
	return g, h.failed(err, "")
}

// failed makes the next commit fence again after an error. A later token excludes no editor: an earlier page of this machine may have
// fenced as it woke.
func (h *history) failed(err error, id string) error {
	if err == nil {
		return nil
	}
	h.mu.Lock()
	h.server = 0
	h.mu.Unlock()
	if errors.Is(err, autosave.ErrStaleToken) {
		return unwritable(id)
	}
	return err
}

// keep copies the content of another page, for the editor that holds the lease with the server's token.
func (h *history) keep(ctx context.Context, server int64, g autosave.Generation, content []byte) (autosave.Generation, error) {
	if _, fenced := h.fenced(server); server == 0 || !fenced {
		return g, unwritable("")
	}
	return h.commit(ctx, autosave.Commit{Content: autosave.Bytes(content), Token: server, SavedAt: g.SavedAt,
		Draft: g.Draft, Number: g.Number, OwnerName: g.OwnerName, Limits: unlimited})
}

// unlimited keeps everything: the editor's own limits come with its first commit.
var unlimited = autosave.Limits{MaxGenerations: math.MaxInt32, MaxBytes: math.MaxInt64}

// pin names a generation that this machine keeps.
func (h *history) pin(ctx context.Context, server int64, id, name string) (autosave.Generation, error) {
	if h.store == nil {
		return autosave.Generation{}, &lock.Error{Code: lock.CodeUnsupported, Operation: autosave.OpSave, Resource: id,
			Detail: "this browser stores no files, so that no history is kept here"}
	}
	local, ok := h.fence(ctx, server)
	if !ok {
		return autosave.Generation{}, unwritable(id)
	}
	ctx, stop := context.WithTimeout(ctx, historyLimit)
	defer stop()
	g, err := h.store.Pin(ctx, local, id, name)
	return g, h.failed(err, id)
}

// list returns the kept generations, the newest first and none of them current; nothing if they cannot be read.
func (h *history) list(ctx context.Context) []autosave.Generation {
	if h.store == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, historyLimit)
	defer stop()
	all, err := h.store.List(ctx)
	if err != nil {
		return nil
	}
	for i := range all {
		all[i].Current = false
	}
	return all
}

// read returns a kept generation.
func (h *history) read(ctx context.Context, id string) ([]byte, error) {
	if h.store == nil {
		return nil, autosave.ErrNotFound
	}
	ctx, stop := context.WithTimeout(ctx, historyLimit)
	defer stop()
	return h.store.Read(ctx, id)
}
