package locks

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	maxDepth     = 16
	maxPaths     = 16
	maxComponent = 128 // bytes
	maxSlots     = 1000
)

// Path is a place in the tree: its components from the root down.
type Path []string

const (
	documents = "documents"
	// part begins each component below a project in the id of a document: "plan~.part%201" is "plan~.part~201".
	part  = "~."
	maxID = 128
)

// Document is the path of the document with an id. A document of a project that has several lies below the project's, so that
// the lock of one and that of the other exclude each other: its id is the project's, and for each component [part] and the
// component, in which every byte but letters, digits and ". _ -" is "~" and two hexadecimal digits. An id that is spelled in
// any other way is one component.
func Document(id string) Path {
	pieces := strings.Split(id, part)
	path := Path{documents, pieces[0]}
	for _, piece := range pieces[1:] {
		path = append(path, unescape(piece))
	}
	if spelled, ok := path.spell(); !ok || spelled != id {
		return Path{documents, id}
	}
	return path
}

// AllDocuments reports whether a path is the place of all documents.
func AllDocuments(p Path) bool { return len(p) == 1 && p[0] == documents }

// Room returns the id of the document whose path it is.
func (p Path) Room() (string, bool) {
	if len(p) == 2 && p[0] == documents {
		return p[1], slices.Equal(Document(p[1]), p)
	}
	id, ok := p.spell()
	return id, ok && slices.Equal(Document(id), p)
}

// spell spells the id of a document.
func (p Path) spell() (string, bool) {
	if len(p) < 2 || p[0] != documents || p.check() != nil {
		return "", false
	}
	var id strings.Builder
	id.WriteString(p[1])
	for _, component := range p[2:] {
		id.WriteString(part)
		for _, b := range []byte(component) {
			if 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || strings.IndexByte("._-", b) >= 0 {
				id.WriteByte(b)
			} else {
				fmt.Fprintf(&id, "~%02X", b)
			}
		}
	}
	return id.String(), id.Len() <= maxID
}

// unescape reads a component as spell writes it. A malformed component does not read back.
func unescape(piece string) string {
	var text []byte
	for i := 0; i < len(piece); i++ {
		if piece[i] == '~' && i+2 < len(piece) {
			if b, err := strconv.ParseUint(piece[i+1:i+3], 16, 8); err == nil {
				text = append(text, byte(b))
				i += 2
				continue
			}
		}
		text = append(text, piece[i])
	}
	return string(text)
}

// String joins the encoded components with slashes; no two paths look the same.
func (p Path) String() string {
	encoded := make([]string, len(p))
	for i, component := range p {
		// QueryEscape leaves letters, digits and -_.~ alone; nothing encoded begins with "!".
		encoded[i] = strings.ReplaceAll(url.QueryEscape(component), "+", "%20")
	}
	return strings.Join(encoded, "/")
}

func samePaths(a, b []Path) bool {
	return slices.EqualFunc(a, b, func(p, q Path) bool { return slices.Equal(p, q) })
}

func (p Path) check() error {
	if len(p) == 0 || len(p) > maxDepth {
		return &InvalidError{fmt.Sprintf("a path has 1 to %d components", maxDepth)}
	}
	for _, component := range p {
		if component == "" || len(component) > maxComponent {
			return &InvalidError{fmt.Sprintf("a component of a path has 1 to %d bytes", maxComponent)}
		}
	}
	return nil
}

// ancestors returns the paths above p, the root's child first.
func (p Path) ancestors() []Path {
	var list []Path
	for i := 1; i < len(p); i++ {
		list = append(list, p[:i])
	}
	return list
}

// covers reports whether q is p or below it.
func (p Path) covers(q Path) bool {
	return len(p) <= len(q) && slices.Equal(p, q[:len(p)])
}

// cover reports whether one of the paths covers one of the others.
func cover(paths, others []Path) bool {
	return slices.ContainsFunc(paths, func(p Path) bool { return slices.ContainsFunc(others, p.covers) })
}

// merged returns the paths in the one global order, each once. For an exclusive request those under another path of
// the request go: their ancestor covers them.
func merged(paths []Path, mode Mode) []Path {
	list := slices.Clone(paths)
	slices.SortFunc(list, func(a, b Path) int { return slices.Compare(a, b) })
	var kept []Path
	for _, p := range list {
		if len(kept) > 0 {
			last := kept[len(kept)-1] // sorted: an ancestor comes before everything below it
			if slices.Equal(last, p) || mode == Exclusive && last.covers(p) {
				continue
			}
		}
		kept = append(kept, p)
	}
	return kept
}
