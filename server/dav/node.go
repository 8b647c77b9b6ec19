package dav

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/httpapi"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/policy"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

type kind int

const (
	missing kind = iota
	file
	collection
)

// node is the file or collection at a place, or its absence.
type node struct {
	place
	kind kind
	info content.Info // of a file; that of a collection has only an entity tag
}

// collectionTag is the entity tag of a collection. No header can have this text as a tag, so a condition with a tag never holds for a
// collection, but a condition with * does.
const collectionTag = "]"

func (n node) url() string { return n.href(n.kind == collection) }

const (
	dirPrefix = "dav/dirs/"
	// page is the number of names per read, and few is the number for a read that only checks whether there are names.
	page, few = 500, 10
	// maxMembers is the maximum number of members of a collection that one request lists, copies or deletes.
	maxMembers = 20_000
)

// maxHidden is the maximum number of names that one request passes over because the session may not read them. Tests change it.
var maxHidden = 20_000

var (
	errMissing  = httpapi.Refusal(http.StatusNotFound, "document_not_found", "There is nothing here.")
	errNoParent = httpapi.Refusal(http.StatusConflict, "no_collection", "The collection for it does not exist.")
	errTooMany  = httpapi.Refusal(http.StatusInsufficientStorage, "too_many_members", "The collection has too many members for one request.")
)

// look finds the node at a place, as the session may see it. It fails if the session may not read the place, whether or not there is
// something.
func (h *Handler) look(ctx context.Context, s sessions.Session, p place) (node, error) {
	n := node{place: p}
	is, err := h.isCollection(ctx, s, p)
	if err != nil {
		return n, err
	}
	if is {
		n.kind, n.info.ETag = collection, collectionTag
		return n, nil
	}
	if err := h.API.May(s, p.path(), policy.Read); err != nil {
		return n, err
	}
	found, err := h.Contents.Find(ctx, p.id(), "")
	if errors.Is(err, content.ErrNotFound) {
		return n, nil
	}
	n.kind, n.info = file, found.Info
	return n, err
}

// lookAtRequest finds what is at the place of the request, as the session may see it.
func (h *Handler) lookAtRequest(c *call) (node, error) {
	n, err := h.look(c.r.Context(), c.session, c.place)
	if err == nil && n.kind == missing {
		err = errMissing
	}
	return n, err
}

// isCollection reports whether a place is a collection: the root, one that was made, or one with a member.
func (h *Handler) isCollection(ctx context.Context, s sessions.Session, p place) (bool, error) {
	if p.root() {
		return true, nil
	}
	if h.API.May(s, p.path(), policy.Read) == nil {
		made, _, err := h.Store.Get(ctx, dirPrefix+p.id())
		if err != nil || made.Found() {
			return made.Found(), err
		}
	}
	found := false
	err := h.each(ctx, s, p, few, func(node) (string, error) { found = true; return "", errStop })
	return found, err
}

var errStop = errors.New("the caller has seen enough")

// each visits the documents below a place and the collections that were made there, as far as the session may read them.
// visit returns a text to continue after, or "" for the next name. Each reads size names at once.
func (h *Handler) each(ctx context.Context, s sessions.Session, p place, size int64, visit func(node) (string, error)) error {
	if !h.API.MayReadSomewhere(s, p.path()) {
		return nil
	}
	hidden := 0
	for _, list := range []func(after string) ([]node, string, error){
		func(after string) ([]node, string, error) { return h.madeBelow(ctx, p, after, size) },
		func(after string) ([]node, string, error) { return h.documentsBelow(ctx, p, after, size) },
	} {
		for after := ""; ; {
			nodes, last, err := list(after)
			if err != nil {
				return err
			}
			for _, n := range nodes {
				if n.id() <= after {
					continue
				}
				if h.API.May(s, n.path(), policy.Read) != nil {
					hidden++
					continue
				}
				skip, err := visit(n)
				if errors.Is(err, errStop) {
					return nil
				}
				if err != nil {
					return err
				}
				after = max(after, skip)
			}
			if last == "" {
				break
			}
			after, size = max(after, last), page
			if hidden > maxHidden {
				return errTooMany
			}
		}
	}
	return nil
}

// documentsBelow returns a page of the documents below a place, and the last name if there may be more.
func (h *Handler) documentsBelow(ctx context.Context, p place, after string, size int64) (list []node, last string, err error) {
	documents, err := h.Contents.Documents(ctx, p.inside(), after, size)
	for _, d := range documents {
		if q, ok := placeOfDocument(d.ID); ok && q.below(p) {
			list = append(list, node{q, file, d.Info})
		}
	}
	if int64(len(documents)) == size {
		last = documents[size-1].ID
	}
	return list, last, err
}

// madeBelow is documentsBelow for the collections that were made.
func (h *Handler) madeBelow(ctx context.Context, p place, after string, size int64) (list []node, last string, err error) {
	entries, err := h.Store.Page(ctx, dirPrefix+p.inside(), dirPrefix+after, size)
	for _, e := range entries {
		if q, ok := placeOfDocument(strings.TrimPrefix(e.Key, dirPrefix)); ok && q.below(p) {
			list = append(list, node{place: q, kind: collection})
		}
	}
	if int64(len(entries)) == size {
		last = strings.TrimPrefix(entries[size-1].Key, dirPrefix)
	}
	return list, last, err
}

// members returns the members of a collection, in the order of their names. With deep it returns all that is below, and
// a collection comes before its own members.
func (h *Handler) members(ctx context.Context, s sessions.Session, p place, deep bool) ([]node, error) {
	found := map[string]node{}
	add := func(n node) {
		if old, ok := found[n.id()]; !ok || old.kind == file {
			found[n.id()] = n // what is a collection is not shown as a file
		}
	}
	err := h.each(ctx, s, p, page, func(n node) (string, error) {
		if len(found) > maxMembers {
			return "", errTooMany
		}
		for depth := len(p) + 1; depth < len(n.place); depth++ {
			above := n.place[:depth]
			add(node{place: above, kind: collection})
			if !deep {
				return above.inside() + "\xff", nil // no id below it comes after this
			}
		}
		if _, ok := found[n.id()]; !ok || n.kind == collection {
			add(n)
		}
		return "", nil
	})
	list := make([]node, 0, len(found))
	for _, n := range found {
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b node) int { return slices.Compare(a.place, b.place) })
	return list, err
}

// Forget returns the operations that remove what this package keeps of a document that is deleted.
func Forget(id string) []kv.Op { return []kv.Op{kv.Delete(propsPrefix + id)} }
