package dav

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"

	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/httpapi"
	"github.com/holdfast-dev/holdfast/server/kv"
)

const (
	propsPrefix = "dav/props/"
	// maxProps is the maximum size of all properties of a resource together, in bytes.
	maxProps = 64 << 10
)

// property is a property that a program has set: a dead property of RFC 4918.
type property struct {
	Space string `json:"s,omitempty"`
	Name  string `json:"n"`
	Lang  string `json:"l,omitempty"`
	Value string `json:"v,omitempty"` // the XML inside
}

func (p property) name() xml.Name { return xml.Name{Space: p.Space, Local: p.Name} }

var errProps = httpapi.Refusal(http.StatusInsufficientStorage, "too_many_properties", fmt.Sprintf("The properties of a resource have at most %d bytes together.", maxProps))

// propsKey is the key of the properties of a node.
func (n node) propsKey() string {
	if n.kind == collection {
		return propsPrefix + n.id() + "/"
	}
	return propsPrefix + n.id()
}

// readProps reads the properties of nodes, at most [kv.MaxOps].
func (h *Handler) readProps(ctx context.Context, nodes []node) ([][]property, error) {
	var reads []kv.Op
	for _, n := range nodes {
		reads = append(reads, kv.Read(n.propsKey()))
	}
	result, err := h.Store.Commit(ctx, kv.Txn{Then: reads})
	if err != nil {
		return nil, err
	}
	list := make([][]property, len(nodes))
	for i, read := range result.Reads {
		if len(read) > 0 {
			if list[i], err = decodeProps(read[0]); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// propsOf reads the properties of a node, and the revision at which they changed; 0 if it has none.
func (h *Handler) propsOf(ctx context.Context, n node) (props []property, modified int64, err error) {
	e, _, err := h.Store.Get(ctx, n.propsKey())
	if err != nil {
		return nil, 0, err
	}
	props, err = decodeProps(e)
	return props, e.Modified, err
}

func decodeProps(e kv.Entry) (props []property, err error) {
	if !e.Found() {
		return nil, nil
	}
	if err := json.Unmarshal(e.Value, &props); err != nil {
		return nil, fmt.Errorf("the properties at %q are damaged: %w", e.Key, err)
	}
	return props, nil
}

// storeProps returns the operation that stores the properties of a node.
func storeProps(n node, props []property) (kv.Op, error) {
	if len(props) == 0 {
		return kv.Delete(n.propsKey()), nil
	}
	text, err := json.Marshal(props)
	if err == nil && len(text) > maxProps {
		err = errProps
	}
	return kv.Put(n.propsKey(), text), err
}

// update is one instruction of PROPPATCH.
type update struct {
	property
	remove bool
}

// readUpdates reads the body of PROPPATCH.
func readUpdates(body *element) (updates []update, err error) {
	for _, instruction := range body.elements() {
		remove := instruction.name == xml.Name{Space: davSpace, Local: "remove"}
		if !remove && instruction.name != (xml.Name{Space: davSpace, Local: "set"}) {
			continue // an extension
		}
		prop, ok := instruction.child("prop")
		if !ok {
			return nil, errXML
		}
		around := lang(prop, lang(instruction, lang(*body, "")))
		for _, e := range prop.elements() {
			updates = append(updates, update{property{e.name.Space, e.name.Local, lang(e, around), inner(e)}, remove})
		}
	}
	if len(updates) == 0 {
		return nil, errXML
	}
	return updates, nil
}

// apply returns the properties after the updates. The last update of a property counts. The time is linear, because a request has
// thousands of updates if it wants to.
func apply(props []property, updates []update) []property {
	last := map[xml.Name]int{}
	for i, u := range updates {
		last[u.name()] = i
	}
	props = slices.DeleteFunc(slices.Clone(props), func(p property) bool { _, updated := last[p.name()]; return updated })
	for i, u := range updates {
		if last[u.name()] == i && !u.remove {
			props = append(props, u.property)
		}
	}
	return props
}

// patch changes properties, all or none.
func (h *Handler) patch(c *call) error {
	body, err := h.readXML(c, "propertyupdate")
	if err != nil {
		return err
	}
	if body == nil {
		return errXML
	}
	updates, err := readUpdates(body)
	if err != nil {
		return err
	}
	n, err := h.writable(c)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(updates, func(u update) bool { return protected(u.name()) }) {
		answerPatch(c, n, updates, http.StatusForbidden)
		return nil
	}
	what := theContent
	if n.kind == collection {
		what = theProperties
	}
	g, n, err := h.changing(c, n.place, what, func(now node) error {
		if now.kind != n.kind {
			return errMissing
		}
		return c.expected()(now.info)
	})
	if err != nil {
		return err
	}
	defer g.end()
	if err := h.patchUnder(c.r.Context(), g, n, updates); err != nil {
		return err
	}
	answerPatch(c, n, updates, http.StatusOK)
	return nil
}

// patchUnder changes the properties under the right. A file must still exist, because an administrator may delete it without a
// lock, and its properties with it.
func (h *Handler) patchUnder(ctx context.Context, g *right, n node, updates []update) error {
	for {
		conditions, err := g.fence(ctx)
		if err != nil {
			return err
		}
		if n.kind == file {
			if _, err := h.Contents.Find(ctx, n.id(), ""); err != nil {
				return err
			}
			conditions = append(conditions, content.Exists(n.id()))
		}
		props, modified, err := h.propsOf(ctx, n)
		if err != nil {
			return err
		}
		op, err := storeProps(n, apply(props, updates))
		if err != nil {
			return err
		}
		if op.Puts() && h.Store.Space().Full {
			return kv.ErrReserved
		}
		if op.Puts() && n.kind == collection { // otherwise the properties would outlast a collection that exists by its members alone
			if err := g.keepDir(ctx, n.place); err != nil {
				return err
			}
		}
		conditions = append(conditions, kv.ChangedAt(n.propsKey(), modified))
		if result, err := h.Store.Commit(ctx, kv.Txn{If: conditions, Then: []kv.Op{op}}); err != nil || result.Held {
			return err
		}
	}
}

// answerPatch responds with the status of each property. If one is protected, the others fail because of it.
func answerPatch(c *call, n node, updates []update, status int) {
	x := newXML()
	x.open("multistatus")
	x.open("response")
	x.text("href", n.url())
	for _, u := range updates {
		one := status
		if status == http.StatusForbidden && !protected(u.name()) {
			one = http.StatusFailedDependency
		}
		x.open("propstat")
		x.open("prop")
		x.property(u.name(), "", "")
		x.close("prop")
		x.text("status", statusLine(one))
		if one == http.StatusForbidden {
			x.open("error")
			x.empty("cannot-modify-protected-property")
			x.close("error")
		}
		x.close("propstat")
	}
	x.close("response")
	x.close("multistatus")
	x.send(c.w, http.StatusMultiStatus)
}

func statusLine(status int) string {
	return fmt.Sprintf("HTTP/1.1 %d %s", status, http.StatusText(status))
}
