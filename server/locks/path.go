package locks

import (
	"fmt"
	"net/url"
	"slices"
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

// Document is the path of a room's document.
func Document(room string) Path { return Path{documents, room} }

const documents = "documents"

// AllDocuments reports whether a path is the place of all documents.
func AllDocuments(p Path) bool { return len(p) == 1 && p[0] == documents }

// Room returns the room whose document the path is.
func (p Path) Room() (string, bool) {
	if len(p) == 2 && p[0] == documents {
		return p[1], true
	}
	return "", false
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
