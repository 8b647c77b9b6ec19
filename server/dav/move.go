package dav

import (
	"context"
	"slices"

	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/kv"
)

// movesPrefix is the prefix of a key for each collection whose move has begun and not ended. Its value is the id of the
// destination. The end of the collection removes it.
const movesPrefix = "dav/moves/"

// continues reports whether a transfer continues a move that did not reach its end. Then the destination has documents of the
// source, so they must stay.
func (h *Handler) continues(t *transfer) (bool, error) {
	if !t.move || t.from.kind != collection || t.to.kind != collection {
		return false, nil
	}
	e, _, err := h.Store.Get(t.r.Context(), movesPrefix+t.from.id())
	return string(e.Value) == t.to.id(), err
}

// moveAll moves nodes, each document in one transaction, and then removes the collections that are left. A crash in between
// leaves each document at one of the two places.
func (h *Handler) moveAll(t *transfer, nodes []node) (failed []failure, err error) {
	ctx := t.r.Context()
	if failed, err = h.eachNode(t, nodes, func(node, node) error { return nil }); err != nil || len(failed) > 0 {
		return failed, err // an invalid name: nothing moves
	}
	if err := t.source.keepParent(ctx, t.from.place); err != nil {
		return nil, err
	}
	if t.from.kind == collection {
		if err := t.source.beginMove(ctx, t.to.place); err != nil {
			return nil, err
		}
	}
	expected := content.Expected(nil)
	if t.from.kind == file {
		expected = t.expected()
	}
	failed, err = h.eachNode(t, nodes, func(from, to node) error { return h.moveNode(t, from, to, expected) })
	if err != nil || len(failed) > 0 {
		return failed, err
	}
	slices.Reverse(nodes)
	for _, n := range nodes {
		if n.kind != collection {
			continue
		}
		if err := t.source.removeDir(ctx, n.place); err != nil {
			failed = append(failed, failure{n, err})
		}
	}
	return failed, nil
}

// beginMove records that the collection of the right moves.
func (g *right) beginMove(ctx context.Context, to place) error {
	key := movesPrefix + g.place.id()
	for {
		e, _, err := g.Store.Get(ctx, key)
		if err != nil {
			return err
		}
		if held, err := g.commit(ctx, kv.ChangedAt(key, e.Modified), kv.Put(key, []byte(to.id()))); held || err != nil {
			return err
		}
	}
}

// moveNode moves a document, or makes the collection at its new place, with the properties.
func (h *Handler) moveNode(t *transfer, from, to node, expected content.Expected) error {
	ctx := t.r.Context()
	op, err := h.copyProps(ctx, from, to)
	if err != nil {
		return err
	}
	if from.kind == collection {
		if err := t.target.makeCopy(ctx, to, op); err != nil {
			return err
		}
		return h.own(t.source, from, to, func(from, to node) error { return h.moveNode(t, from, to, nil) })
	}
	return h.Contents.MoveUnder(ctx, from.id(), to.id(), t.source.content(), t.target.content(op), expected)
}
