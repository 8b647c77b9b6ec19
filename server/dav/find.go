package dav

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

const (
	// maxNames is the maximum number of properties that a request names, maxAnswer that of the bytes of an answer. After maxLocked bytes,
	// an answer has no more locks.
	maxNames, maxAnswer, maxLocked = 200, 64 << 20, 16 << 20
	// smallAnswer is the size in bytes up to which an answer is sent without a turn: see [httpapi.API.TakeMemory].
	smallAnswer = 64 << 10
	// nodesAtOnce is the number of nodes whose properties are read together.
	nodesAtOnce = 100
)

// query is the body of PROPFIND.
type query struct {
	all, namesOnly bool
	names          []xml.Name // with all, those that are asked for besides
}

func readQuery(body *element) (q query, err error) {
	if body == nil {
		return query{all: true}, nil
	}
	prop, byName := body.child("prop")
	_, all := body.child("allprop")
	_, namesOnly := body.child("propname")
	include, _ := body.child("include")
	q = query{all: all, namesOnly: namesOnly}
	for _, e := range append(prop.elements(), include.elements()...) {
		q.names = append(q.names, e.name)
	}
	kinds := 0
	for _, given := range []bool{byName, all, namesOnly} {
		if given {
			kinds++
		}
	}
	if kinds != 1 || len(q.names) > maxNames {
		return q, errXML
	}
	return q, nil
}

// wants reports whether the answer may have the property.
func (q query) wants(name xml.Name) bool {
	return q.all || q.namesOnly || slices.Contains(q.names, name)
}

// wantsDead reports whether the answer may have properties that programs have set.
func (q query) wantsDead() bool {
	return q.all || q.namesOnly || slices.ContainsFunc(q.names, func(n xml.Name) bool { return !protected(n) })
}

// find lists properties. It does not list whole trees: that would be without bound.
func (h *Handler) find(c *call) error {
	deep, err := depth(c.r)
	if err != nil {
		return err
	}
	body, err := h.readXML(c, "propfind")
	if err != nil {
		return err
	}
	q, err := readQuery(body)
	if err != nil {
		return err
	}
	n, err := h.lookAtRequest(c)
	if err != nil {
		return err
	}
	if deep < 0 && n.kind == collection {
		return &davError{http.StatusForbidden, "propfind-finite-depth", nil}
	}
	if deep == 0 || n.kind == file {
		answer, err := h.answerFind(c, q, []node{n})
		if err != nil {
			return err
		}
		answer.send(c.w, http.StatusMultiStatus)
		return nil
	}
	return h.listMembers(c, q, n)
}

// listMembers lists the properties of a collection and of its members.
func (h *Handler) listMembers(c *call, q query, n node) error {
	end, err := h.API.TakeMemory(c.r)
	if err != nil {
		return err
	}
	defer end()
	members, err := h.members(c.r.Context(), c.session, n.place, false)
	if err != nil {
		return err
	}
	answer, err := h.answerFind(c, q, append([]node{n}, members...))
	if err != nil {
		return err
	}
	if answer.Len() <= smallAnswer {
		end() // others need not wait for a client that reads slowly
	}
	answer.send(c.w, http.StatusMultiStatus)
	return nil
}

// answerFind returns the answer with the properties of nodes: one node, or a collection and its members.
func (h *Handler) answerFind(c *call, q query, nodes []node) (*xmlWriter, error) {
	held, err := leasesByPlace(nil), error(nil)
	if q.wants(nameOf("lockdiscovery")) {
		if held, err = h.leasesOverAll(c.r.Context(), nodes); err != nil {
			return nil, err
		}
	}
	x := newXML()
	x.open("multistatus")
	for some := range slices.Chunk(nodes, nodesAtOnce) {
		props := make([][]property, len(some))
		if q.wantsDead() {
			if props, err = h.readProps(c.r.Context(), some); err != nil {
				return nil, err
			}
		}
		for i, n := range some {
			if x.Len() > maxLocked {
				held = nil
			}
			h.answerNode(x, c.session, q, n, props[i], held.covering(n))
			if x.Len() > maxAnswer { // after each node, because the names of a request can be long
				return nil, errTooMany
			}
		}
	}
	x.close("multistatus")
	return x, nil
}

// answerNode writes the properties of a node.
func (h *Handler) answerNode(x *xmlWriter, s sessions.Session, q query, n node, dead []property, leases []locks.Lease) {
	var found []property
	for _, name := range liveNames {
		if value, ok := h.live(s, n, name, leases); ok && q.wants(nameOf(name)) {
			found = append(found, property{Space: davSpace, Name: name, Value: value})
		}
	}
	for _, p := range dead {
		if q.wants(p.name()) {
			found = append(found, p)
		}
	}
	var absent []property
	for _, name := range q.names {
		if !slices.ContainsFunc(found, func(p property) bool { return p.name() == name }) {
			absent = append(absent, property{Space: name.Space, Name: name.Local})
		}
	}
	if q.namesOnly {
		for i := range found {
			found[i].Value, found[i].Lang = "", ""
		}
	}
	x.open("response")
	x.text("href", n.url())
	if len(found) > 0 || len(absent) == 0 {
		writeProps(x, found, http.StatusOK)
	}
	if len(absent) > 0 {
		writeProps(x, absent, http.StatusNotFound)
	}
	x.close("response")
}

func writeProps(x *xmlWriter, list []property, status int) {
	x.open("propstat")
	x.open("prop")
	for _, p := range list {
		x.property(p.name(), p.Lang, p.Value)
	}
	x.close("prop")
	x.text("status", statusLine(status))
	x.close("propstat")
}

// liveNames are the properties of the namespace DAV: that this server computes.
var liveNames = []string{"resourcetype", "getcontentlength", "getlastmodified", "getetag", "getcontenttype", "supportedlock", "lockdiscovery"}

func nameOf(live string) xml.Name { return xml.Name{Space: davSpace, Local: live} }

// protected reports whether programs may not set a property. They may set the names that people give.
func protected(name xml.Name) bool {
	return name.Space == davSpace && name.Local != "displayname" && name.Local != "getcontentlanguage"
}

// live returns the value of a live property, as XML.
func (h *Handler) live(s sessions.Session, n node, name string, leases []locks.Lease) (string, bool) {
	x := &xmlWriter{}
	x.Grow(256)
	switch name {
	case "resourcetype":
		if n.kind == collection {
			x.empty("collection")
		}
		return x.String(), true
	case "supportedlock":
		return `<D:lockentry><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockentry>` +
			`<D:lockentry><D:lockscope><D:shared/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockentry>`, true
	case "lockdiscovery":
		return h.discovery(s, n, leases), true
	}
	if n.kind != file {
		return "", false
	}
	switch name {
	case "getcontentlength":
		return strconv.Itoa(n.info.Size), true
	case "getlastmodified":
		return n.info.SavedAt.UTC().Format(http.TimeFormat), true
	case "getetag":
		x.escape(n.info.ETag)
	case "getcontenttype":
		x.escape("application/octet-stream") // as GET says
	}
	return x.String(), true
}

// leasesByPlace are leases by the places that they are on.
type leasesByPlace map[string][]locks.Lease

// leasesOverAll returns the leases that cover a collection or one of its members, not those further below. There may be more than
// it returns, because a server may withhold locks (RFC 4918, section 15.8).
func (h *Handler) leasesOverAll(ctx context.Context, nodes []node) (leasesByPlace, error) {
	found := leasesByPlace{}
	for _, n := range nodes {
		for key := range n.placesAround() {
			found[key] = nil
		}
	}
	path := nodes[0].path()
	if len(nodes) == 1 && nodes[0].kind == collection {
		path = nodes[0].members() // nothing is below it
	}
	leases, err := h.someLeases(ctx, path, func(paths []locks.Path) bool {
		return slices.ContainsFunc(paths, func(p locks.Path) bool { _, wanted := found[keyOf(p)]; return wanted })
	})
	for _, l := range leases {
		for _, path := range l.Paths {
			if key := keyOf(path); len(found[key]) < sharers {
				found[key] = append(found[key], l)
			}
		}
	}
	if errors.Is(err, errTooMany) {
		err = nil
	}
	return found, err
}

func keyOf(path locks.Path) string { return strings.Join(path, "\x00") }

// placesAround yields the keys of the paths whose leases cover a node.
func (n node) placesAround() iter.Seq[string] {
	return func(yield func(string) bool) {
		path := n.members()
		for i := range path {
			if !yield(keyOf(path[:i+1])) {
				return
			}
		}
	}
}

// covering returns the leases that cover a node.
func (l leasesByPlace) covering(n node) (list []locks.Lease) {
	if len(l) == 0 {
		return nil
	}
	for key := range n.placesAround() {
		list = append(list, l[key]...)
	}
	return list
}

// discovery returns the value of lockdiscovery: the locks that cover a node, those of web editors too. Only the holder sees
// the token.
func (h *Handler) discovery(s sessions.Session, n node, leases []locks.Lease) string {
	x := &xmlWriter{}
	for _, l := range leases {
		if i := covering(l.Paths, n.place); i >= 0 && h.API.MayRead(s, l.Paths) {
			writeLock(x, l, l.Paths[i], n, s.Owns(l.Holder.ID))
		}
	}
	return x.String()
}

func writeLock(x *xmlWriter, l locks.Lease, path locks.Path, n node, mine bool) {
	at, members, _ := placeOf(path)
	owner, own := strings.CutPrefix(l.Note, noteOwn)
	scope, depth := "exclusive", "infinity"
	if l.Slots > 1 || l.Mode == locks.Shared {
		scope = "shared"
	}
	if members {
		depth = "0"
	}
	x.open("activelock")
	x.WriteString("<D:locktype><D:write/></D:locktype><D:lockscope><D:" + scope + "/></D:lockscope><D:depth>" + depth + "</D:depth>")
	switch {
	case own && owner != "":
		x.property(nameOf("owner"), "", owner)
	default:
		x.text("owner", l.Holder.Name)
	}
	x.text("timeout", fmt.Sprintf("Second-%d", max(int(time.Until(l.ExpiresAt).Round(time.Second)/time.Second), 0)))
	if own && mine {
		x.open("locktoken")
		x.text("href", tokenOf(l))
		x.close("locktoken")
	}
	x.open("lockroot")
	x.text("href", at.href(members || n.kind == collection && len(at) == len(n.place) || len(at) < len(n.place)))
	x.close("lockroot")
	x.close("activelock")
}
