package dav

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/kv"
)

// movesPrefix is the prefix of a key for each collection whose move has begun and not ended. Its value is the id of the
// destination. One transaction puts this key and makes the destination. The end of the collection removes it.
const movesPrefix = "dav/moves/"

// continues reports whether a transfer continues a move that did not reach its end. Then the destination has documents of the
// source, so they must stay. A destination that somebody has made later is another one.
func (h *Handler) continues(t *transfer) (bool, error) {
	if !t.move || t.from.kind != collection || t.to.kind != collection {
		return false, nil
	}
	begun, _, err := h.Store.Get(t.r.Context(), movesPrefix+t.from.id())
	if err != nil || string(begun.Value) != t.to.id() {
		return false, err
	}
	made, _, err := h.Store.Get(t.r.Context(), dirPrefix+t.to.id())
	return made.Found() && made.Created == begun.Modified, err
}

// moveAll moves nodes, each document in one transaction, and then removes the collections that are left. A crash in between
// leaves each document at one of the two places.
func (h *Handler) moveAll(t *transfer, nodes []node) (failed []failure, err error) {
	ctx := t.r.Context()
	if err := t.source.keepParent(ctx, t.from.place); err != nil {
		return nil, err
	}
	if t.from.kind == collection {
		if err := t.moveDir(ctx, t.from, t.to); err != nil {
			return nil, err // without the key, nothing moves
		}
		t.source.scope, t.target.scope = theMembers, theMembers
	}
	failed, err = h.eachNode(t, nodes, func(from, to node) error { return h.moveNode(t, from, to, t.expected()) })
	if err != nil || len(failed) > 0 {
		return failed, err
	}
	slices.Reverse(nodes)
	for _, n := range nodes {
		if n.kind != collection {
			continue
		}
		if slices.Equal(n.place, t.from.place) {
			t.source.scope = theEntry
		}
		err := t.source.removeDir(ctx, n.place)
		if ended := endOf(ctx, err); ended != nil {
			return nil, ended
		}
		if err != nil {
			failed = append(failed, failure{n, err})
		}
	}
	return failed, nil
}

// moveDir makes the new collection for the maker of the old one, unless it exists. It checks no limit, because the old one
// goes. The collection of the request exists until its end, also if it existed by its members alone.
func (t *transfer) moveDir(ctx context.Context, from, to node) error {
	store, old := t.source.Store, dirPrefix+from.id()
	for {
		source, err := t.source.fence(ctx)
		if err != nil {
			return err
		}
		target, err := t.target.fence(ctx)
		if err != nil {
			return err
		}
		made, _, err := store.Get(ctx, dirPrefix+to.id())
		if err != nil || made.Found() {
			return err
		}
		e, _, err := store.Get(ctx, old)
		if err != nil {
			return err
		}
		ops := dirOf(to.place, cmp.Or(string(e.Value), t.target.writer(to.place).Maker))
		if slices.Equal(from.place, t.from.place) {
			ops = append(ops, kv.Put(movesPrefix+from.id(), []byte(to.id())))
			if !e.Found() {
				ops = append(ops, kv.Put(old, nil)) // of no maker
			}
		}
		conditions := slices.Concat(source, target, []kv.Cond{kv.Absent(dirPrefix + to.id()), kv.ChangedAt(old, e.Modified)})
		if result, err := store.Commit(ctx, kv.Txn{If: conditions, Then: ops}); err != nil || result.Held {
			return err
		}
	}
}

// moveNode moves a document, or makes the collection at its new place, with the properties.
func (h *Handler) moveNode(t *transfer, from, to node, expected content.Expected) error {
	if from.kind != collection {
		return h.moveFile(t, from, to, expected)
	}
	ctx := t.r.Context()
	op, err := h.copyProps(ctx, from, to)
	if err != nil {
		return err
	}
	if err := t.moveDir(ctx, from, to); err != nil {
		return err
	}
	if _, err := t.target.commit(ctx, kv.Exists(dirPrefix+to.id()), op); err != nil {
		return err
	}
	return h.own(t.source, from, to, func(from, to node) error { return h.moveNode(t, from, to, nil) })
}

var errPropsChanged = errors.New("the properties have changed since they were read")

// moveFile moves a document with its properties. Another request under the same lock may change them meanwhile.
func (h *Handler) moveFile(t *transfer, from, to node, expected content.Expected) error {
	ctx, key := t.r.Context(), from.propsKey()
	for {
		props, modified, err := h.propsOf(ctx, from)
		if err != nil {
			return err
		}
		op, err := storeProps(to, props)
		if err != nil {
			return err
		}
		source := t.source.content()
		source.Fence = func(ctx context.Context) ([]kv.Cond, error) {
			now, _, err := h.Store.Get(ctx, key)
			if err == nil && now.Modified != modified {
				err = errPropsChanged
			}
			if err != nil {
				return nil, err
			}
			fence, err := t.source.fence(ctx)
			return append(fence, kv.ChangedAt(key, modified)), err
		}
		err = h.Contents.MoveUnder(ctx, from.id(), to.id(), source, t.target.content(op), expected)
		if !errors.Is(err, errPropsChanged) {
			return err
		}
	}
}
