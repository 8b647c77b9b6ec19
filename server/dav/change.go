package dav

import (
	"context"
	"io"
	"net/http"
	"slices"

	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/httpapi"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/policy"
)

var (
	errIsCollection = httpapi.Refusal(http.StatusMethodNotAllowed, "is_collection", "This is a collection.")
	errExists       = httpapi.Refusal(http.StatusMethodNotAllowed, "exists", "There is something with this name.")
	errBody         = httpapi.Refusal(http.StatusUnsupportedMediaType, "invalid_request", "MKCOL takes no body.")
	errRoot         = httpapi.Refusal(http.StatusForbidden, "not_allowed", "The root cannot be changed.")
)

// writable finds what is at the place of the request, if the session may write there.
func (h *Handler) writable(c *call) (node, error) {
	n, err := h.lookAtRequest(c)
	if err == nil {
		err = h.API.May(c.session, c.place.path(), policy.Write)
	}
	return n, err
}

// hasParent checks that the collection around a place exists.
func (h *Handler) hasParent(c *call, p place) error {
	is, err := h.isCollection(c.r.Context(), c.session, p.parent())
	if err == nil && !is {
		err = errNoParent
	}
	return err
}

func (h *Handler) put(c *call) error {
	n, err := h.look(c.r.Context(), c.session, c.place)
	if err != nil {
		return err
	}
	check := func(n node) error { return h.mayPut(c, n) }
	if err := check(n); err != nil {
		return err
	}
	what := theContent
	if n.kind == missing {
		what = theEntry
	}
	data, end, err := h.API.ReadContent(c.w, c.r, func() error {
		if err := h.inTheWay(c, n.place, what); err != nil {
			return err
		}
		return c.expected()(n.info)
	})
	if err != nil {
		return err
	}
	defer end()
	g, n, err := h.changing(c, n.place, what, check)
	if err != nil {
		return err
	}
	defer g.end()
	if n.kind == missing {
		g.scope = theEntry // the file may have gone while the request waited
	}
	info, err := h.Contents.WriteUnder(c.r.Context(), n.id(), g.content(), content.Save{}, c.expected(), data)
	if err != nil {
		return err
	}
	c.w.Header().Set("ETag", info.ETag)
	status := http.StatusNoContent
	if n.kind == missing {
		status = http.StatusCreated
	}
	c.w.WriteHeader(status)
	return nil
}

func (h *Handler) mayPut(c *call, n node) error {
	if n.kind == collection {
		return errIsCollection
	}
	if err := h.API.May(c.session, n.path(), policy.Write); err != nil {
		return err
	}
	if err := httpapi.CheckWholeBody(c.r); err != nil {
		return err
	}
	if c.r.ContentLength > h.MaxContent {
		return httpapi.BodyError(&http.MaxBytesError{Limit: h.MaxContent})
	}
	if n.kind == missing {
		return h.mayCreate(c)
	}
	return nil
}

// expected returns the condition of a request on the content that it changes. If the header If has held for an entity
// tag, the content must still have it.
func (c *call) expected() content.Expected {
	asked := httpapi.Expected(c.r)
	return func(before content.Info) error {
		if err := c.asPinned(c.place, before); err != nil {
			return err
		}
		if asked != nil {
			return asked(before)
		}
		return nil
	}
}

// asPinned checks that a place has the entity tag for which the header If has held.
func (c *call) asPinned(p place, now content.Info) error {
	if tag, pinned := c.pinned[p.id()]; pinned && now.ETag != tag {
		return content.ErrPrecondition
	}
	return nil
}

func (h *Handler) makeCollection(c *call) error {
	if hasBody(c.r) {
		return errBody
	}
	n, err := h.look(c.r.Context(), c.session, c.place)
	if err != nil {
		return err
	}
	check := func(n node) error { return h.mayMake(c, n) }
	if err := check(n); err != nil {
		return err
	}
	g, n, err := h.changing(c, n.place, theEntry, check)
	if err != nil {
		return err
	}
	defer g.end()
	if err := g.makeDir(c.r.Context(), n.place); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusCreated)
	return nil
}

func (h *Handler) mayMake(c *call, n node) error {
	if n.kind != missing {
		return errExists
	}
	if err := h.API.May(c.session, n.path(), policy.Write); err != nil {
		return err
	}
	return h.hasParent(c, n.place)
}

// hasBody reports whether a request has a body. One of unknown length may be empty.
func hasBody(r *http.Request) bool {
	if r.ContentLength < 0 {
		n, _ := io.CopyN(io.Discard, r.Body, 1)
		return n > 0
	}
	return r.ContentLength > 0
}

// makeDir makes a collection. It counts among the documents of its maker.
func (g *right) makeDir(ctx context.Context, p place) error {
	if g.Store.Space().Full {
		return kv.ErrReserved
	}
	if err := g.Contents.MayMake(ctx, g.writer(p)); err != nil {
		return err
	}
	_, err := g.commit(ctx, kv.Absent(dirPrefix+p.id()), dirOf(p, g.writer(p).Maker)...)
	return err
}

// dirOf returns the operations that make a collection for a maker.
func dirOf(p place, maker string) []kv.Op {
	return []kv.Op{kv.Put(dirPrefix+p.id(), []byte(maker)), kv.Put(content.MadeKey(maker, p.id()+"/"), nil)}
}

func (g *right) writer(p place) content.Writer { return g.API.Writer(g.call.session, p.id()) }

// removeDir removes a collection that was made, with its properties. It need not have been made.
func (g *right) removeDir(ctx context.Context, p place) error {
	for {
		key := dirPrefix + p.id()
		e, _, err := g.Store.Get(ctx, key)
		if err != nil {
			return err
		}
		ops := []kv.Op{kv.Delete(key), kv.Delete(node{place: p, kind: collection}.propsKey()), kv.Delete(movesPrefix + p.id())}
		if e.Found() {
			ops = append(ops, kv.Delete(content.MadeKey(string(e.Value), p.id()+"/")))
		}
		if held, err := g.commit(ctx, kv.ChangedAt(key, e.Modified), ops...); held || err != nil {
			return err
		}
	}
}

func (h *Handler) remove(c *call) error {
	deep, err := depth(c.r)
	if err != nil || deep == 1 {
		return errDepth
	}
	n, err := h.writable(c)
	if err != nil {
		return err
	}
	check := func(n node) error {
		if err := h.mayRemove(c, n); err != nil {
			return err
		}
		if n.kind == collection && deep == 0 {
			return errDepth
		}
		if n.kind == missing {
			return errMissing
		}
		return c.expected()(n.info)
	}
	if err := check(n); err != nil {
		return err
	}
	g, n, err := h.changing(c, n.place, theEntry, check)
	if err != nil {
		return err
	}
	defer g.end()
	failed, err := g.removeAll(c.r.Context(), n, c.expected())
	if err != nil {
		return err
	}
	if len(failed) > 0 {
		answerFailed(c, failed)
		return nil
	}
	g.endLocks()
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// mayRemove checks that the session may write everything that goes. The policy alone decides, so the answer does not tell
// what there is.
func (h *Handler) mayRemove(c *call, n node) error {
	if n.root() {
		return errRoot
	}
	if n.kind == collection {
		return h.API.MayBelow(c.session, n.path(), policy.Write|policy.Read)
	}
	return h.API.May(c.session, n.path(), policy.Write)
}

// failure is a failed resource in a change of several resources.
type failure struct {
	node
	err error
}

// endOf returns why a change of several resources ends after one of them: the client has gone, or the store does not answer. Each further
// resource would wait for the store, too.
func endOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil && statusOf(err) == http.StatusServiceUnavailable {
		return err
	}
	return nil
}

// removeAll removes a node with everything below it, the deepest first. It returns the resources that it could not remove.
func (g *right) removeAll(ctx context.Context, n node, expected content.Expected) (failed []failure, err error) {
	if n.kind == file {
		return nil, g.removeFile(ctx, n, expected)
	}
	below, err := g.members(ctx, g.call.session, n.place, true)
	if err != nil {
		return nil, err
	}
	if err := g.mayBegin(ctx); err != nil {
		return nil, err
	}
	if err := g.keepParent(ctx, n.place); err != nil {
		return nil, err
	}
	slices.Reverse(below)
	for _, one := range append(below, n) {
		err := g.removeOne(ctx, one)
		if ended := endOf(ctx, err); ended != nil {
			return failed, ended
		}
		if err != nil {
			failed = append(failed, failure{one, err})
		}
	}
	return failed, nil
}

// removeOne removes a document or an empty collection, with the document that the collection also is.
func (g *right) removeOne(ctx context.Context, n node) error {
	err := g.Contents.DeleteUnder(ctx, n.id(), g.content(), content.Save{}, nil)
	if err == nil && n.kind == collection {
		err = g.removeDir(ctx, n.place)
	}
	return err
}

// removeFile removes a document.
func (g *right) removeFile(ctx context.Context, n node, expected content.Expected) error {
	if err := g.keepParent(ctx, n.place); err != nil {
		return err
	}
	return g.Contents.DeleteUnder(ctx, n.id(), g.content(), content.Save{}, expected)
}

// keepParent makes sure that the collection around a removed place stays. A collection that exists only because it has members would
// disappear with its last member, which programs do not expect. keepParent checks no limit, because a member goes.
func (g *right) keepParent(ctx context.Context, p place) error { return g.keepDir(ctx, p.parent()) }

// keepDir makes a collection that exists, unless it was made before.
func (g *right) keepDir(ctx context.Context, p place) error {
	if p.root() {
		return nil
	}
	e, _, err := g.Store.Get(ctx, dirPrefix+p.id())
	if err != nil || e.Found() {
		return err
	}
	_, err = g.commit(ctx, kv.Absent(dirPrefix+p.id()), dirOf(p, g.writer(p).Maker)...)
	return err
}

// answerFailed responds with the list of failures.
func answerFailed(c *call, failed []failure) {
	x := newXML()
	x.open("multistatus")
	for _, f := range failed {
		x.open("response")
		x.text("href", f.url())
		x.text("status", statusLine(statusOf(f.err)))
		x.close("response")
	}
	x.close("multistatus")
	x.send(c.w, http.StatusMultiStatus)
}
