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
	// part precedes each component below a project in a document's id: "plan~.part%201" is "plan~.part~201".
	part  = "~."
	maxID = 128
)

// Document returns the path of the document with this id. A document of a project with several documents lies below
// the project's path, so that the lock of the project and that of the document exclude each other. Its id is the
// project's id, followed by [part] and the component for each component. In a component every byte except letters,
// digits and ". _ -" is written as "~" and two hexadecimal digits. An id in any other spelling is one component.
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

// AllDocuments reports whether a path is the parent of all documents.
func AllDocuments(p Path) bool { return len(p) == 1 && p[0] == documents }

// Room returns the id of the document with this path.
func (p Path) Room() (string, bool) {
	if len(p) == 2 && p[0] == documents {
		return p[1], slices.Equal(Document(p[1]), p)
	}
	id, ok := p.spell()
	return id, ok && slices.Equal(Document(id), p)
}

// spell returns the document id of the path.
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

// unescape decodes a component that spell encoded. A malformed component does not encode back to the same text.
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

// String joins the encoded components with slashes. No two paths have the same string.
func (p Path) String() string {
	encoded := make([]string, len(p))
	for i, component := range p {
		// QueryEscape keeps letters, digits and -_.~ unchanged. No encoded component begins with "!".
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

// ancestors returns the paths above p, shortest first.
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

// merged returns the paths in the global order, each once. In an exclusive request it omits paths below another path
// of the request, because their ancestor covers them.
func merged(paths []Path, mode Mode) []Path {
	list := slices.Clone(paths)
	slices.SortFunc(list, func(a, b Path) int { return slices.Compare(a, b) })
	var kept []Path
	for _, p := range list {
		if len(kept) > 0 {
			last := kept[len(kept)-1] // the list is sorted: an ancestor comes before everything below it
			if slices.Equal(last, p) || mode == Exclusive && last.covers(p) {
				continue
			}
		}
		kept = append(kept, p)
	}
	return kept
}
