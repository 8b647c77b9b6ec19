package dav

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/document"
	"github.com/holdfast-dev/holdfast/server/httpapi"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// place is a place in the tree: the components of a document's path below "documents". The root has none.
type place []string

const root = "documents"

// membersMark is the component of the lock on the members of a collection, which is a lock of depth 0. No member can
// have this name.
const membersMark = "/"

var (
	errName = httpapi.Refusal(http.StatusForbidden, "invalid_name",
		`This name cannot be a document's: it is empty, "." or "..", has "/" or invisible characters, or is too long with its path.`)
	errElsewhere = httpapi.Refusal(http.StatusBadGateway, "elsewhere", "The destination is not on this server, or not below "+Prefix+".")
)

// parsePlace reads the escaped path of a URL.
func parsePlace(escaped string) (place, error) {
	rest, ok := strings.CutPrefix(escaped, strings.TrimSuffix(Prefix, "/"))
	if !ok || rest != "" && rest[0] != '/' {
		return nil, errElsewhere
	}
	rest = strings.TrimSuffix(strings.TrimPrefix(rest, "/"), "/")
	if rest == "" {
		return place{}, nil
	}
	var p place
	for _, part := range strings.Split(rest, "/") {
		name, err := url.PathUnescape(part)
		if err != nil {
			return nil, errName
		}
		p = append(p, name)
	}
	first := p[0]
	p[0] = firstPart(first)
	if !p.valid() || firstName(p[0]) != first {
		return nil, errName
	}
	return p, nil
}

// valid reports whether a place can be that of a document.
func (p place) valid() bool {
	id, ok := document.ID(p)
	return ok && document.IsID(id) && slices.Equal(document.Path(id), p) && !slices.ContainsFunc(p, badName) &&
		!slices.ContainsFunc(p.names(), badName)
}

// badName reports whether a name could be taken for another one, by a program or by a reader.
func badName(name string) bool {
	return name == "" || name == "." || name == ".." || !utf8.ValidString(name) ||
		strings.ContainsFunc(name, func(r rune) bool { return r == '/' || r == '\\' || !unicode.IsGraphic(r) })
}

// firstPart returns the first component of the document with this name. The first component of a document's path has the
// spelling that it has in the document's id, so a name with other characters is escaped there. A name for which
// firstName has another result names nothing.
func firstPart(name string) string {
	if document.IsID(name) {
		return name
	}
	escaped, _ := document.ID([]string{"x", name})
	return strings.TrimPrefix(escaped, "x~.")
}

// firstName is the reverse of firstPart.
func firstName(part string) string {
	if !strings.Contains(part, "~") {
		return part
	}
	if path := document.Path("x~." + part); len(path) == 2 && !document.IsID(path[1]) {
		return path[1]
	}
	return part
}

// names returns the names that the components have in URLs.
func (p place) names() []string {
	names := slices.Clone(p)
	if len(names) > 0 {
		names[0] = firstName(names[0])
	}
	return names
}

func (p place) root() bool { return len(p) == 0 }

// id is the id of the document at the place.
func (p place) id() string {
	id, _ := document.ID(p)
	return id
}

// inside is the prefix of the ids of everything below the place.
func (p place) inside() string {
	if p.root() {
		return ""
	}
	return p.id() + "~."
}

func (p place) path() locks.Path { return append(locks.Path{root}, p...) }

// members is the path of the lock on the members of a collection.
func (p place) members() locks.Path { return append(p.path(), membersMark) }

func (p place) parent() place { return p[:len(p)-1] }

// within reports whether a place is another one or below it.
func (p place) within(other place) bool {
	return len(p) >= len(other) && slices.Equal(p[:len(other)], other)
}

func (p place) below(other place) bool { return len(p) > len(other) && p.within(other) }

// moved returns the place below to that corresponds to a place at or below from.
func (p place) moved(from, to place) place { return slices.Concat(to, p[len(from):]) }

// href is the path of the URL.
func (p place) href(collection bool) string {
	text := strings.TrimSuffix(Prefix, "/")
	for _, name := range p.names() {
		text += "/" + url.PathEscape(name)
	}
	if collection || p.root() {
		text += "/"
	}
	return text
}

// placeOf returns the place of a lock's path, and whether it is a lock of depth 0 on a collection.
func placeOf(path locks.Path) (p place, members, ok bool) {
	if len(path) == 0 || path[0] != root {
		return nil, false, false
	}
	p = place(path[1:])
	if len(p) > 0 && p[len(p)-1] == membersMark {
		return p[:len(p)-1], true, true
	}
	return p, false, true
}

// placeOfDocument returns the place of a document's id. Some ids of other programs have none.
func placeOfDocument(id string) (place, bool) {
	p := place(document.Path(id))
	return p, p.valid()
}
