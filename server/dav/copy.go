package dav

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/httpapi"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/policy"
)

var (
	errDestination = httpapi.Refusal(http.StatusBadRequest, "invalid_request", "The header Destination must be the URL of the copy.")
	errOverwrite   = httpapi.Refusal(http.StatusPreconditionFailed, "precondition_failed", "There is something at the destination, and Overwrite is F.")
	errOverlap     = httpapi.Refusal(http.StatusForbidden, "not_allowed", "The source and the destination are the same, or one is inside the other.")
)

// transfer is a COPY or MOVE.
type transfer struct {
	*call
	from, to node
	shallow  bool
	move     bool
	// source is the right to remove what is moved, target the right to write what is copied.
	source, target *right
}

func (h *Handler) copy(c *call) error { return h.transfer(c, false) }

func (h *Handler) move(c *call) error { return h.transfer(c, true) }

func (h *Handler) transfer(c *call, move bool) error {
	t := &transfer{call: c, move: move}
	deep, err := depth(c.r)
	if err != nil || deep == 1 || deep == 0 && move {
		return errDepth
	}
	t.shallow = deep == 0
	if err := h.readEnds(t); err != nil {
		return err
	}
	defer func() { t.target.end(); t.source.end() }()
	if err := h.lockEnds(t); err != nil {
		return err
	}
	if err := h.lookAtEnds(t); err != nil {
		return err // something has changed while the request waited for other changes
	}
	if !move {
		end, err := h.API.TakeCopy(c.r) // the contents are in memory
		if err != nil {
			return err
		}
		defer end()
	}
	failed, err := h.carryOut(t)
	if err != nil {
		return err
	}
	if len(failed) > 0 {
		answerFailed(c, failed)
		return nil
	}
	if move {
		t.source.endLocks()
	}
	status := http.StatusNoContent
	if t.to.kind == missing {
		status = http.StatusCreated
	}
	c.w.WriteHeader(status)
	return nil
}

// lockEnds acquires the rights, in the order of the places, so that two transfers do not wait for each other. The first right ends locks
// of the program, in vain if the second one is refused. So lockEnds first checks both.
func (h *Handler) lockEnds(t *transfer) (err error) {
	if t.move {
		for _, p := range []place{t.from.place, t.to.place} {
			if err := h.inTheWay(t.call, p, theEntry); err != nil {
				return err
			}
		}
	}
	source := func() (err error) {
		if t.move {
			t.source, err = h.mayChange(t.call, t.from.place, theEntry)
		}
		return err
	}
	sourceFirst := slices.Compare(t.from.place, t.to.place) < 0
	if sourceFirst {
		err = source()
	}
	if err == nil {
		t.target, err = h.mayChange(t.call, t.to.place, theEntry)
	}
	if err == nil && !sourceFirst {
		err = source()
	}
	return err
}

// readEnds finds the source and the destination.
func (h *Handler) readEnds(t *transfer) (err error) {
	t.from.place = t.place
	text := t.r.Header.Get("Destination")
	if text == "" {
		return errDestination
	}
	if t.to.place, err = placeOfURL(t.r, text); err != nil {
		return err
	}
	if t.from.root() || t.to.root() {
		return errRoot
	}
	if t.to.within(t.from.place) || t.from.within(t.to.place) {
		return errOverlap
	}
	return h.lookAtEnds(t)
}

// lookAtEnds finds what is at the source and at the destination, and checks that the transfer may begin.
func (h *Handler) lookAtEnds(t *transfer) (err error) {
	if t.from, err = h.lookAtRequest(t.call); err != nil {
		return err
	}
	if t.to, err = h.look(t.r.Context(), t.session, t.to.place); err != nil {
		return err
	}
	if err := t.asPinned(t.to.place, t.to.info); err != nil {
		return err
	}
	if t.to.kind != missing && strings.EqualFold(t.r.Header.Get("Overwrite"), "F") {
		if continued, err := h.continues(t); err != nil || !continued {
			return cmp.Or(err, errOverwrite)
		}
	}
	if err := h.hasParent(t.call, t.to.place); err != nil {
		return err
	}
	if err := h.mayTransfer(t); err != nil {
		return err
	}
	if h.Store.Space().Full {
		return kv.ErrReserved
	}
	return t.call.expected()(t.from.info)
}

// mayTransfer checks the permissions. As with mayRemove, the policy alone decides.
func (h *Handler) mayTransfer(t *transfer) error {
	if t.move {
		if err := h.mayRemove(t.call, t.from); err != nil {
			return err
		}
	}
	if t.from.kind == collection || t.to.kind == collection {
		return h.API.MayBelow(t.session, t.to.path(), policy.Write|policy.Read)
	}
	return h.API.May(t.session, t.to.path(), policy.Write)
}

// carryOut copies or moves. It refuses what it can refuse before it removes a collection at the destination.
func (h *Handler) carryOut(t *transfer) (failed []failure, err error) {
	ctx := t.r.Context()
	for _, g := range []*right{t.source, t.target} {
		if err := g.mayBegin(ctx); err != nil {
			return nil, err
		}
	}
	nodes, failed, err := h.leaving(t)
	if err != nil || len(failed) > 0 {
		return failed, err
	}
	var single fileCopy
	if !t.move && t.from.kind == file {
		if single, err = h.readCopy(ctx, t.from, t.to, t.expected()); err != nil {
			return nil, err
		}
	}
	continued, err := h.continues(t)
	if err != nil {
		return nil, err
	}
	if !continued && (t.to.kind == collection || t.to.kind == file && t.from.kind == collection) {
		if err := h.mayReplace(t, nodes); err != nil {
			return nil, err
		}
		if failed, err = t.target.removeAll(ctx, t.to, nil); err != nil || len(failed) > 0 {
			return failed, err
		}
	}
	switch {
	case t.move:
		return h.moveAll(t, nodes)
	case t.from.kind == file:
		return nil, t.target.writeCopy(ctx, single)
	}
	return h.eachNode(t, nodes, func(from, to node) error {
		err := h.copyNode(ctx, t.target, from, to)
		if err == nil {
			t.target.scope = theMembers // the first node is the collection itself
		}
		return err
	})
}

// mayReplace checks, before what is at its destination goes, that a copy has space and does not exceed the limit of documents afterwards.
func (h *Handler) mayReplace(t *transfer, nodes []node) error {
	if t.move {
		return nil // it makes nothing new
	}
	size := int64(0)
	for _, n := range nodes {
		size += int64(n.info.Size)
	}
	if !h.Contents.HasSpace(size) {
		return kv.ErrReserved
	}
	return h.mayMakeInstead(t, nodes)
}

// mayMakeInstead checks the limit of documents for a copy that replaces what is at its destination.
func (h *Handler) mayMakeInstead(t *transfer, nodes []node) error {
	ctx, by := t.r.Context(), t.target.writer(t.to.place)
	fewer := int64(0)
	for _, prefix := range []string{t.to.inside(), t.to.id() + "/"} {
		n, err := h.Store.Count(ctx, content.MadeKey(by.Maker, prefix))
		if err != nil {
			return err
		}
		fewer += n
	}
	own, _, err := h.Store.Get(ctx, content.MadeKey(by.Maker, t.to.id()))
	if err != nil {
		return err
	}
	if own.Found() {
		fewer++
	}
	return h.Contents.MayMakeMore(ctx, by, int64(len(nodes)), fewer)
}

// expected returns the condition on the content that is copied or moved. That on a collection is not one on its members.
func (t *transfer) expected() content.Expected {
	if t.from.kind == collection {
		return nil
	}
	return t.call.expected()
}

// leaving returns the nodes to copy or move, or why that cannot begin.
func (h *Handler) leaving(t *transfer) (nodes []node, failed []failure, err error) {
	nodes = []node{t.from}
	if t.from.kind == collection && !t.shallow {
		var below []node
		below, err = h.members(t.r.Context(), t.session, t.from.place, true)
		nodes = append(nodes, below...)
	}
	if err == nil && t.move { // where one name cannot be, nothing moves
		failed, err = h.eachNode(t, nodes, func(node, node) error { return nil })
	}
	return nodes, failed, err
}

// eachNode calls f for each node and its new place. It returns the failures of members; that of a single file is an error.
func (h *Handler) eachNode(t *transfer, nodes []node, f func(from, to node) error) (failed []failure, err error) {
	ctx := t.r.Context()
	for _, n := range nodes {
		to := n
		to.place = n.moved(t.from.place, t.to.place)
		err := errName
		if to.valid() {
			err = f(n, to)
		}
		if ended := endOf(ctx, err); ended != nil {
			return nil, ended
		}
		if t.from.kind == file {
			return nil, err
		}
		if err != nil && !errors.Is(err, content.ErrNotFound) { // otherwise a member that was deleted meanwhile
			failed = append(failed, failure{to, err})
		}
	}
	return failed, nil
}

// copyNode copies a document or makes a collection, with the properties.
func (h *Handler) copyNode(ctx context.Context, g *right, from, to node) error {
	if from.kind != collection {
		c, err := h.readCopy(ctx, from, to, nil)
		if err != nil {
			return err
		}
		return g.writeCopy(ctx, c)
	}
	op, err := h.copyProps(ctx, from, to)
	if err != nil {
		return err
	}
	if err := g.makeCopy(ctx, to, op); err != nil {
		return err
	}
	return h.own(g, from, to, func(from, to node) error { return h.copyNode(ctx, g, from, to) })
}

// fileCopy is a document that has been read to be written under another name.
type fileCopy struct {
	to    node
	props kv.Op
	data  []byte
}

// readCopy reads a document with its properties. The condition, if any, holds for the content that it returns, which may be a later one
// than that of from.
func (h *Handler) readCopy(ctx context.Context, from, to node, expected content.Expected) (c fileCopy, err error) {
	c.to, c.to.kind = to, file
	if c.props, err = h.copyProps(ctx, from, c.to); err != nil {
		return c, err
	}
	data, read, err := h.Contents.Read(ctx, from.id())
	if err == nil && expected != nil {
		err = expected(read)
	}
	c.data = data
	return c, err
}

func (g *right) writeCopy(ctx context.Context, c fileCopy) error {
	_, err := g.Contents.WriteUnder(ctx, c.to.id(), g.content(c.props), content.Save{}, nil, c.data)
	return err
}

// copyProps returns the operation that stores the properties of a node for another one.
func (h *Handler) copyProps(ctx context.Context, from, to node) (kv.Op, error) {
	props, _, err := h.propsOf(ctx, from)
	if err != nil {
		return kv.Op{}, err
	}
	return storeProps(to, props)
}

// makeCopy makes a collection with properties.
func (g *right) makeCopy(ctx context.Context, to node, props kv.Op) error {
	if err := g.makeDir(ctx, to.place); err != nil {
		return err
	}
	_, err := g.commit(ctx, kv.Exists(dirPrefix+to.id()), props)
	return err
}

// own calls f for the document that a collection also is, if there is one that the session may read.
func (h *Handler) own(g *right, from, to node, f func(from, to node) error) error {
	if readable := h.API.May(g.call.session, from.path(), policy.Read) == nil; !readable {
		return nil
	}
	from.kind, to.kind = file, file
	err := f(from, to)
	if errors.Is(err, content.ErrNotFound) {
		return nil
	}
	return err
}
